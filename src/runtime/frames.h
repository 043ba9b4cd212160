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
    LH_FRAME_HELLO,   /* a process asks the first one to be let in: LhHello */
    LH_FRAME_WELCOME, /* it is: nothing */
    LH_FRAME_REFUSAL, /* it is not: why, as text */
    LH_FRAME_DATA,    /* what processes share */
    LH_FRAME_FAILURE, /* a process has failed: which, and why */
    LH_FRAME_END,     /* a process ends, and needs no more: nothing */
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

/* How a process presents itself. */
typedef struct {
    uint32_t rank, size;
    unsigned char token[LH_TOKEN_BYTES];
} LhHello;

#define LH_HELLO_BYTES (8 + LH_TOKEN_BYTES)

GBytes *lh_hello_pack(const LhHello *hello);
/* False if @content is none. */
bool lh_hello_unpack(GBytes *content, LhHello *hello);

/* That @rank has failed, and why; the text is cut after LH_FRAME_TEXT_BYTES. */
GBytes *lh_failure_pack(uint32_t rank, const char *text);
/* The text, which is UTF-8; NULL if @content is none. Caller frees. */
char *lh_failure_unpack(GBytes *content, uint32_t *rank);
