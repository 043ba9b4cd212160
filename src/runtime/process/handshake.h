/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake by which a process joins: at the start port, where all connect to the first
 * process, and at data ports, where TCP channels begin. The client identifies itself; the server
 * accepts it or says why not. If they share a secret, each proves to the other that it has it:
 *
 *     HELLO      identity, purpose, token, nonce
 *                            CHALLENGE   a nonce
 *     PROOF      HMAC-SHA256 with the secret over 'C', the whole hello and both nonces
 *                            WELCOME     the same over 'A'
 *
 * Fresh nonces prevent replay, and the letters prevent reflection of a proof. The server proves
 * itself only to a client whose proof it has accepted. Without a secret there are only HELLO and
 * WELCOME, and the token alone is checked.
 *
 * Nothing here blocks, and no byte beyond the last frame is read.
 */
#pragma once

#include "runtime/process/frames.h"
#include "runtime/process/secret.h"

#define LH_NONCE_BYTES 32
#define LH_PROOF_BYTES 32      /* SHA-256 */
#define LH_HELLO_HOST_BYTES 64 /* including the terminating 0 */

typedef enum { LH_PORT_START = 'S', LH_PORT_DATA = 'D' } LhPort;

/* How a client identifies itself. */
typedef struct {
    LhPort port;
    uint32_t rank, ranks; /* its rank, and the number of ranks */
    uint32_t to;          /* the rank it connects to */
    uint32_t channel;     /* of a TCP channel */
    unsigned char token[LH_TOKEN_BYTES];
    char host[LH_HELLO_HOST_BYTES]; /* its host name as it says; empty: not usable */
    bool has_secret;                /* a secret was given to it, as in LhSecret */
    unsigned char nonce[LH_NONCE_BYTES];
} LhHello;

#define LH_HELLO_BYTES (1 + 4 * 4 + LH_TOKEN_BYTES + LH_HELLO_HOST_BYTES + 1 + LH_NONCE_BYTES)

/* Sets the name of this host. */
void lh_hello_set_host(LhHello *hello);
GBytes *lh_hello_pack(const LhHello *hello);
/* False if @content is no hello. */
bool lh_hello_unpack(GBytes *content, LhHello *hello);

/* Why a client with this hello is rejected, whatever it proves; NULL: it may join. Caller frees. */
typedef char *(*LhJudgeFunc)(void *owner, const LhHello *hello);

/* The server's side; borrowed. */
typedef struct {
    const LhSecret *secret;
    LhJudgeFunc judge;
    void *owner; /* judge's */
} LhAnswer;

typedef struct {
    int socket;             /* -1: none */
    const LhSecret *secret; /* of the client */
    LhHello hello;          /* the client's own; at the server, the one received */
    bool heard;             /* the server: a valid hello arrived; the client: a challenge arrived */
    unsigned char nonce[LH_NONCE_BYTES]; /* of the server */
    GByteArray *received;                /* owned: an incomplete frame */
} LhHandshake;

typedef enum {
    LH_HANDSHAKE_WAITS,  /* waits for the other end */
    LH_HANDSHAKE_IN,     /* complete: the other end is accepted */
    LH_HANDSHAKE_BUSY,   /* the server has no room now: retry */
    LH_HANDSHAKE_REFUSED /* rejected by either end */
} LhHandshakeState;

/* Begins a handshake as client: takes over a connected non-blocking socket and sends @hello,
 * without its nonce. @secret is borrowed. False with @error (LH_ERROR_RUNTIME); the socket then
 * remains the caller's. */
bool lh_handshake_call(LhHandshake *h, int socket, const LhHello *hello, const LhSecret *secret,
                       GError **error);
/* Begins a handshake as server: takes over an accepted socket. */
void lh_handshake_answer(LhHandshake *h, int socket);
/* Advances as far as the received bytes allow. @answer is NULL for a client. @error
 * (LH_ERROR_RUNTIME) says why either end refused; if this one did, it has sent the reason. */
LhHandshakeState lh_handshake_move(LhHandshake *h, const LhAnswer *answer, GError **error);
/* Tells the client to retry later. */
void lh_handshake_put_off(LhHandshake *h);
/* Returns the socket, which the caller owns from now on. */
int lh_handshake_take_socket(LhHandshake *h);
/* Closes the socket unless it was taken. */
void lh_handshake_clear(LhHandshake *h);
