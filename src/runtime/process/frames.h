/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames: what processes tell each other over TCP. A frame is a header of 12 bytes and what
 * follows:
 *
 *     bytes 0-3   "lhF1"
 *     byte 4      the kind
 *     bytes 5-7   0
 *     bytes 8-11  how many bytes follow, little endian
 *
 * Whatever comes over a connection may be hostile: nothing is taken that is not such a frame, nor
 * one that is longer than its reader expects.
 */
#pragma once

#include "runtime/process/launcher_env.h"

#define LH_FRAME_HEADER_BYTES 12
#define LH_FRAME_TEXT_BYTES 4096 /* at most, of the text of a failure or a refusal */

typedef enum {
    LH_FRAME_HELLO,     /* a process asks to be let in (handshake.h): LhHello */
    LH_FRAME_CHALLENGE, /* it is asked to prove that it has the secret: a nonce */
    LH_FRAME_PROOF,     /* that it has it */
    LH_FRAME_WELCOME,   /* it is let in: a proof, or nothing if there is no secret */
    LH_FRAME_REFUSAL,   /* it is not: why, as text */
    LH_FRAME_BUSY,      /* it may come again: nothing */
    LH_FRAME_DATA,      /* what processes share */
    LH_FRAME_FAILURE,   /* a process has failed: LhFailure */
    LH_FRAME_STANDING,  /* what a process is at, from time to time and when it is asked: LhStanding
                         */
    LH_FRAME_ASK,       /* what is it at? Nothing */
    LH_FRAME_VERDICT,   /* which rank ends the run: LhFailure */
    LH_FRAME_HOSTS,     /* the name of the first process's host, and where other hosts are */
    LH_FRAME_END,       /* a process ends, and needs no more: nothing */
    LH_FRAME_KINDS
} LhControlFrameKind;

typedef struct {
    LhControlFrameKind kind;
    GBytes *content; /* owned */
} LhControlFrame;

void lh_control_frame_clear(LhControlFrame *frame);

/* The header of a frame; @bytes follow. */
GBytes *lh_control_frame_header(LhControlFrameKind kind, uint32_t bytes);

/*
 * Takes the first frame off what has been received: 1, and the caller clears it; 0 if it is not
 * there as a whole; -1 with @error (LH_ERROR_RUNTIME) if @received does not begin with a frame, or
 * with one that has more than @limit bytes.
 */
int lh_control_frame_take(GByteArray *received, uint32_t limit, LhControlFrame *frame,
                          GError **error);
/* How many bytes @received lacks, of the header of its first frame or of what follows that. The
 * frame is one that lh_control_frame_take() does not refuse and cannot take yet. */
guint lh_control_frame_missing(const GByteArray *received);
/* How many bytes the first frame announces, once its header is there; 0 before. */
uint32_t lh_control_frame_announced(const GByteArray *received);

/* Numbers in contents: four bytes, little endian. */
void lh_frame_append_number(GByteArray *bytes, uint32_t number);
uint32_t lh_frame_number(const unsigned char *from);

/* That a rank has failed, with which exit status, and why; the text is cut after
 * LH_FRAME_TEXT_BYTES. */
GBytes *lh_failure_pack(uint32_t rank, int status, const char *text);
/* The text, which is UTF-8; NULL if @content is none. Caller frees. */
char *lh_failure_unpack(GBytes *content, uint32_t *rank, int *status);

#define LH_LAST_WORDS_BYTES 256 /* at most, of their text */

#define LH_LAST_FRAME_BYTES (LH_FRAME_HEADER_BYTES + 8 + LH_LAST_WORDS_BYTES)

/* The frame of such a failure, @text cut after LH_LAST_WORDS_BYTES, without anything that takes
 * memory: [LH_LAST_FRAME_BYTES] @frame. How many bytes it has. */
size_t lh_last_words_pack(LhControlFrameKind kind, uint32_t rank, int status, const char *text,
                          unsigned char *frame);

/* What a process is at. */
typedef struct {
    bool gave_up;    /* it has waited for others for its deadline */
    GArray *awaited; /* of uint32_t: the ranks that it waits for; owned */
    char *text;      /* in words, as a failure's; owned */
} LhStanding;

#define LH_STANDING_RANKS_MAX 64 /* that one names */

GBytes *lh_standing_pack(const LhStanding *standing);
/* False if @content is none. Ends with lh_standing_clear() after success. */
bool lh_standing_unpack(GBytes *content, LhStanding *standing);
void lh_standing_clear(LhStanding *standing);
