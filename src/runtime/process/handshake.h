/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a process gets in: at the start port, where all meet the first one, and at data ports, where
 * wires begin. Who calls says who it is, and who answers lets it in or says why not. If they share
 * a secret, each proves to the other that it has it:
 *
 *     HELLO      who calls, what for, a token, a nonce
 *                            CHALLENGE   a nonce
 *     PROOF      HMAC-SHA256 by the secret over 'C', the whole hello and both nonces
 *                            WELCOME     the same over 'A'
 *
 * Nonces are new each time, so that no answer is of use again, and the letters differ, so that none
 * is of use to the other side. Who answers proves itself only to whom it believes. Without a secret
 * there are only HELLO and WELCOME, and whoever knows the token is believed.
 *
 * Nothing waits here, and no byte beyond the last frame is read.
 */
#pragma once

#include "runtime/process/frames.h"
#include "runtime/process/secret.h"

#define LH_NONCE_BYTES 32
#define LH_PROOF_BYTES 32      /* SHA-256 */
#define LH_HELLO_HOST_BYTES 64 /* with the 0 at its end */

typedef enum { LH_PORT_START = 'S', LH_PORT_DATA = 'D' } LhPort;

/* How a process presents itself. */
typedef struct {
    LhPort port;
    uint32_t rank, ranks; /* its own, of so many */
    uint32_t to;          /* the rank that it calls */
    uint32_t channel;     /* of a wire */
    unsigned char token[LH_TOKEN_BYTES];
    char host[LH_HELLO_HOST_BYTES]; /* its own name, as it says; empty: none that could be one */
    bool has_secret;                /* that was given to it, as in LhSecret */
    unsigned char nonce[LH_NONCE_BYTES];
} LhHello;

#define LH_HELLO_BYTES (1 + 4 * 4 + LH_TOKEN_BYTES + LH_HELLO_HOST_BYTES + 1 + LH_NONCE_BYTES)

/* The name of this computer. */
void lh_hello_set_host(LhHello *hello);
GBytes *lh_hello_pack(const LhHello *hello);
/* False if @content is none. */
bool lh_hello_unpack(GBytes *content, LhHello *hello);

/* Why who says this is not let in, whatever it proves; NULL: it may be. Caller frees. */
typedef char *(*LhJudgeFunc)(void *owner, const LhHello *hello);

/* What who answers knows; borrowed. */
typedef struct {
    const LhSecret *secret;
    LhJudgeFunc judge;
    void *owner; /* judge's */
} LhAnswer;

typedef struct {
    int socket;                          /* -1: none */
    const LhSecret *secret;              /* of who calls */
    LhHello hello;                       /* of who calls; of who answers, what it has heard */
    bool heard;                          /* the hello, which is right */
    unsigned char nonce[LH_NONCE_BYTES]; /* of who answers */
    GByteArray *received;                /* owned: what is not yet a whole frame */
} LhHandshake;

typedef enum {
    LH_HANDSHAKE_WAITS,  /* for the other end */
    LH_HANDSHAKE_IN,     /* the other end is who it should be */
    LH_HANDSHAKE_BUSY,   /* it has no room now: call again */
    LH_HANDSHAKE_REFUSED /* by one of both */
} LhHandshakeState;

/* Takes a socket over that is connected and does not block, and presents itself: @hello, without
 * its nonce. @secret is borrowed. False with @error (LH_ERROR_RUNTIME); the socket stays. */
bool lh_handshake_call(LhHandshake *h, int socket, const LhHello *hello, const LhSecret *secret,
                       GError **error);
/* Takes a socket over from which somebody calls. */
void lh_handshake_answer(LhHandshake *h, int socket);
/* Moves on as far as what has come allows. @answer is NULL for who calls. @error (LH_ERROR_RUNTIME)
 * says why one of both refused; the other end has been told if this one did. */
LhHandshakeState lh_handshake_move(LhHandshake *h, const LhAnswer *answer, GError **error);
/* Tells who calls to come again. */
void lh_handshake_put_off(LhHandshake *h);
/* The socket, which is the caller's from now on. */
int lh_handshake_take_socket(LhHandshake *h);
/* Closes the socket, if it is still there. */
void lh_handshake_clear(LhHandshake *h);
