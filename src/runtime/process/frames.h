/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames: the unit of communication between processes over TCP. A frame is a header of 12 bytes and
 * its content:
 *
 *     bytes 0-3   "lhF1"
 *     byte 4      the kind
 *     bytes 5-7   0
 *     bytes 8-11  content length in bytes, little endian
 *
 * Input from a connection may be hostile: only valid frames no longer than their reader expects are
 * accepted.
 */
#pragma once

#include "runtime/process/launcher_env.h"

#define LH_FRAME_HEADER_BYTES 12
#define LH_FRAME_TEXT_BYTES 4096 /* longest text of a failure or refusal */

typedef enum {
    LH_FRAME_HELLO,     /* a process asks to join (handshake.h): LhHello */
    LH_FRAME_CHALLENGE, /* a nonce: prove possession of the secret */
    LH_FRAME_PROOF,     /* the proof */
    LH_FRAME_WELCOME,   /* accepted: a proof, or empty without a secret */
    LH_FRAME_REFUSAL,   /* rejected: the reason as text */
    LH_FRAME_BUSY,      /* retry later: empty */
    LH_FRAME_DATA,      /* exchanged data */
    LH_FRAME_FAILURE,   /* a process has failed: rank, status, text (lh_failure_pack()) */
    LH_FRAME_STANDING,  /* progress of a process, sent periodically and on request: LhStanding */
    LH_FRAME_ASK,       /* requests LH_FRAME_STANDING: empty */
    LH_FRAME_VERDICT,   /* the rank that caused the failure, as LH_FRAME_FAILURE */
    LH_FRAME_HOSTS,     /* the first process's host name, and addresses of other hosts */
    LH_FRAME_END,       /* a process ends regularly: empty */
    LH_FRAME_KINDS
} LhControlFrameKind;

typedef struct {
    LhControlFrameKind kind;
    GBytes *content; /* owned */
} LhControlFrame;

void lh_control_frame_clear(LhControlFrame *frame);

/* The header of a frame with @bytes of content. */
GBytes *lh_control_frame_header(LhControlFrameKind kind, uint32_t bytes);

/*
 * Takes the first frame from @received. Returns 1 (the caller clears the frame); 0 if it is
 * incomplete; -1 with @error (LH_ERROR_RUNTIME) if @received does not begin with a frame, or the
 * frame has more than @limit bytes.
 */
int lh_control_frame_take(GByteArray *received, uint32_t limit, LhControlFrame *frame,
                          GError **error);
/* Bytes that @received lacks to complete the header of its first frame, or its content once the
 * header is complete. Call after lh_control_frame_take() has returned 0. */
guint lh_control_frame_missing(const GByteArray *received);
/* Content length of the first frame once its header is complete; 0 before. */
uint32_t lh_control_frame_announced(const GByteArray *received);

/* Numbers in contents: four bytes, little endian. */
void lh_frame_append_number(GByteArray *bytes, uint32_t number);
uint32_t lh_frame_number(const unsigned char *from);

/* Packs a failure: rank, exit status and reason; the text is truncated to LH_FRAME_TEXT_BYTES. */
GBytes *lh_failure_pack(uint32_t rank, int status, const char *text);
/* Returns the text, valid UTF-8; NULL if @content is no failure. Caller frees. */
char *lh_failure_unpack(GBytes *content, uint32_t *rank, int *status);

#define LH_LAST_WORDS_BYTES 256 /* longest text of last words */

#define LH_LAST_FRAME_BYTES (LH_FRAME_HEADER_BYTES + 8 + LH_LAST_WORDS_BYTES)

/* Packs such a failure into @frame ([LH_LAST_FRAME_BYTES]) without allocating memory; @text is
 * truncated to LH_LAST_WORDS_BYTES. Returns the number of bytes. */
size_t lh_last_words_pack(LhControlFrameKind kind, uint32_t rank, int status, const char *text,
                          unsigned char *frame);

/* A progress report of a process. */
typedef struct {
    bool gave_up;    /* its wait for others has passed the deadline */
    GArray *awaited; /* of uint32_t: the ranks that it waits for; owned */
    char *text;      /* progress in words; owned */
} LhStanding;

#define LH_STANDING_RANKS_MAX 64 /* ranks in one report */

GBytes *lh_standing_pack(const LhStanding *standing);
/* False if @content is no report. After success, end with lh_standing_clear(). */
bool lh_standing_unpack(GBytes *content, LhStanding *standing);
void lh_standing_clear(LhStanding *standing);
