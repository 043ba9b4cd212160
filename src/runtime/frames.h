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

#include "runtime/launch.h"

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
    LH_FRAME_FAILURE,   /* a process has failed: which, and why */
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

/* That @rank has failed, and why; the text is cut after LH_FRAME_TEXT_BYTES. */
GBytes *lh_failure_pack(uint32_t rank, const char *text);
/* The text, which is UTF-8; NULL if @content is none. Caller frees. */
char *lh_failure_unpack(GBytes *content, uint32_t *rank);
