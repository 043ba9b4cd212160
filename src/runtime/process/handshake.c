/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process/handshake.h"

#include "base/error.h"
#include "runtime/process/socket.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALLER 'C'
#define ANSWERER 'A'

/* ---- the hello ---- */

/* Whether the bytes are a plausible host name or empty; the name is printed in messages. */
static bool
may_be_name(const char host[LH_HELLO_HOST_BYTES])
{
    const gsize length = strnlen(host, LH_HELLO_HOST_BYTES);

    for (gsize i = length; i < LH_HELLO_HOST_BYTES; i++) {
        if (host[i] != '\0')
            return false;
    }
    return length < LH_HELLO_HOST_BYTES &&
           strspn(host, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "-._") == length;
}

void
lh_hello_set_host(LhHello *hello)
{
    memset(hello->host, 0, sizeof(hello->host));
    g_strlcpy(hello->host, g_get_host_name(), sizeof(hello->host));
    if (!may_be_name(hello->host))
        memset(hello->host, 0, sizeof(hello->host));
}

GBytes *
lh_hello_pack(const LhHello *hello)
{
    const guint8 port = (guint8)hello->port, has_secret = hello->has_secret ? 1 : 0;
    GByteArray *bytes = g_byte_array_sized_new(LH_HELLO_BYTES);

    g_byte_array_append(bytes, &port, 1);
    lh_frame_append_number(bytes, hello->rank);
    lh_frame_append_number(bytes, hello->ranks);
    lh_frame_append_number(bytes, hello->to);
    lh_frame_append_number(bytes, hello->channel);
    g_byte_array_append(bytes, hello->token, sizeof(hello->token));
    g_byte_array_append(bytes, (const guint8 *)hello->host, sizeof(hello->host));
    g_byte_array_append(bytes, &has_secret, 1);
    g_byte_array_append(bytes, hello->nonce, sizeof(hello->nonce));
    return g_byte_array_free_to_bytes(bytes);
}

bool
lh_hello_unpack(GBytes *content, LhHello *hello)
{
    gsize count;
    const unsigned char *at = g_bytes_get_data(content, &count);

    if (count != LH_HELLO_BYTES || (at[0] != LH_PORT_START && at[0] != LH_PORT_DATA))
        return false;
    *hello = (LhHello){ .port = (LhPort)at[0],
                        .rank = lh_frame_number(at + 1),
                        .ranks = lh_frame_number(at + 5),
                        .to = lh_frame_number(at + 9),
                        .channel = lh_frame_number(at + 13) };
    at += 17;
    memcpy(hello->token, at, sizeof(hello->token));
    at += sizeof(hello->token);
    memcpy(hello->host, at, sizeof(hello->host));
    at += sizeof(hello->host);
    hello->has_secret = at[0] == 1;
    memcpy(hello->nonce, at + 1, sizeof(hello->nonce));
    return at[0] <= 1 && may_be_name(hello->host);
}

/* "rank 1 on host node1". */
static char *
name_caller(const LhHello *hello)
{
    return hello->host[0] == '\0' ? g_strdup_printf("rank %u", hello->rank)
                                  : g_strdup_printf("rank %u on host %s", hello->rank, hello->host);
}

/* ---- proofs ---- */

static bool
draw_nonce(unsigned char nonce[LH_NONCE_BYTES], GError **error)
{
    if (getrandom(nonce, LH_NONCE_BYTES, 0) == LH_NONCE_BYTES)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "cannot read random numbers: %s",
                g_strerror(errno));
    return false;
}

/* The proof of @role: over the hello, which contains the client's nonce, and the server's nonce. */
static GBytes *
prove(const LhSecret *secret, unsigned char role, const LhHello *hello,
      const unsigned char nonce[LH_NONCE_BYTES])
{
    GHmac *hmac = g_hmac_new(G_CHECKSUM_SHA256, (const guchar *)secret->text, secret->bytes);
    g_autoptr(GBytes) said = lh_hello_pack(hello);
    unsigned char proof[LH_PROOF_BYTES];
    gsize bytes = sizeof(proof);

    g_hmac_update(hmac, &role, 1);
    g_hmac_update(hmac, g_bytes_get_data(said, NULL), (gssize)g_bytes_get_size(said));
    g_hmac_update(hmac, nonce, LH_NONCE_BYTES);
    g_hmac_get_digest(hmac, proof, &bytes);
    g_hmac_unref(hmac);
    return g_bytes_new(proof, sizeof(proof));
}

static bool
is_proof(GBytes *content, const LhSecret *secret, unsigned char role, const LhHandshake *h)
{
    g_autoptr(GBytes) right = prove(secret, role, &h->hello, h->nonce);

    return g_bytes_get_size(content) == LH_PROOF_BYTES &&
           lh_same_secret(g_bytes_get_data(content, NULL), g_bytes_get_data(right, NULL),
                          LH_PROOF_BYTES);
}

/* ---- frames ---- */

/* Sends a frame; all frames of a handshake fit the buffer of a new socket. */
static bool
say(const LhHandshake *h, LhControlFrameKind kind, GBytes *content)
{
    const gsize bytes = content == NULL ? 0 : g_bytes_get_size(content);
    g_autoptr(GBytes) header = lh_control_frame_header(kind, (uint32_t)bytes);
    g_autoptr(GByteArray) all = g_byte_array_new();

    g_byte_array_append(all, g_bytes_get_data(header, NULL), (guint)g_bytes_get_size(header));
    if (bytes > 0)
        g_byte_array_append(all, g_bytes_get_data(content, NULL), (guint)bytes);
    return send(h->socket, all->data, all->len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)all->len;
}

static void
set_refusal(GError **error, const char *why)
{
    g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME, why);
}

/* Returns LH_HANDSHAKE_REFUSED and tells the other end the reason. */
static LhHandshakeState
refuse(const LhHandshake *h, const char *why, GError **error)
{
    g_autoptr(GBytes) text = g_bytes_new(why, strlen(why));

    (void)say(h, LH_FRAME_REFUSAL, text);
    set_refusal(error, why);
    return LH_HANDSHAKE_REFUSED;
}

static LhHandshakeState
say_or_refuse(const LhHandshake *h, LhControlFrameKind kind, GBytes *content,
              LhHandshakeState state, GError **error)
{
    if (say(h, kind, content))
        return state;
    set_refusal(error, "it does not accept data");
    return LH_HANDSHAKE_REFUSED;
}

/* The longest frame allowed now. */
static uint32_t
limit_of(const LhHandshake *h, const LhAnswer *answer)
{
    return answer == NULL ? LH_FRAME_TEXT_BYTES : h->heard ? LH_PROOF_BYTES : LH_HELLO_BYTES;
}

/* Reads the missing bytes of a frame and none beyond it: 1, 0 or -1, as lh_control_frame_take(). */
static int
hear(LhHandshake *h, const LhAnswer *answer, LhControlFrame *frame, GError **error)
{
    const uint32_t limit = limit_of(h, answer);
    int taken;

    while ((taken = lh_control_frame_take(h->received, limit, frame, error)) == 0) {
        const guint before = h->received->len, missing = lh_control_frame_missing(h->received);
        ssize_t count;

        g_byte_array_set_size(h->received, before + missing);
        count = recv(h->socket, h->received->data + before, missing, MSG_DONTWAIT);
        g_byte_array_set_size(h->received, before + (guint)MAX(count, 0));
        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return 0;
        if (count <= 0) {
            set_refusal(error, "it has closed the connection");
            return -1;
        }
    }
    return taken;
}

/* ---- the client ---- */

bool
lh_handshake_call(LhHandshake *h, int socket, const LhHello *hello, const LhSecret *secret,
                  GError **error)
{
    g_autoptr(GBytes) content = NULL;

    *h = (LhHandshake){ .socket = socket, .secret = secret, .hello = *hello };
    h->received = g_byte_array_new();
    h->hello.has_secret = secret->given;
    if (draw_nonce(h->hello.nonce, error)) {
        content = lh_hello_pack(&h->hello);
        if (say_or_refuse(h, LH_FRAME_HELLO, content, LH_HANDSHAKE_WAITS, error) ==
            LH_HANDSHAKE_WAITS)
            return true;
    }
    h->socket = -1;
    lh_handshake_clear(h);
    return false;
}

/* Answers one challenge only: a second could request a second proof. */
static LhHandshakeState
meet_challenge(LhHandshake *h, GBytes *content, GError **error)
{
    g_autoptr(GBytes) proof = NULL;

    if (h->heard || h->secret->bytes == 0 || g_bytes_get_size(content) != LH_NONCE_BYTES) {
        set_refusal(error, "it sent an unexpected challenge");
        return LH_HANDSHAKE_REFUSED;
    }
    h->heard = true;
    memcpy(h->nonce, g_bytes_get_data(content, NULL), LH_NONCE_BYTES);
    proof = prove(h->secret, CALLER, &h->hello, h->nonce);
    return say_or_refuse(h, LH_FRAME_PROOF, proof, LH_HANDSHAKE_WAITS, error);
}

static LhHandshakeState
judge_welcome(const LhHandshake *h, GBytes *content, GError **error)
{
    if (h->secret->bytes == 0 && g_bytes_get_size(content) == 0)
        return LH_HANDSHAKE_IN;
    if (h->secret->bytes > 0 && h->heard && is_proof(content, h->secret, ANSWERER, h))
        return LH_HANDSHAKE_IN;
    set_refusal(error, h->secret->bytes == 0 ? "it sent an unexpected answer"
                       : !h->heard           ? "it did not ask for the secret, so it has none"
                                             : "it has a wrong secret");
    return LH_HANDSHAKE_REFUSED;
}

static LhHandshakeState
take_answer(LhHandshake *h, const LhControlFrame *frame, GError **error)
{
    g_autofree char *why = NULL;
    gsize bytes;
    const char *text = g_bytes_get_data(frame->content, &bytes);

    switch (frame->kind) {
    case LH_FRAME_CHALLENGE:
        return meet_challenge(h, frame->content, error);
    case LH_FRAME_WELCOME:
        return judge_welcome(h, frame->content, error);
    case LH_FRAME_BUSY:
        return LH_HANDSHAKE_BUSY;
    case LH_FRAME_REFUSAL:
        why = g_utf8_make_valid(text, (gssize)bytes);
        break;
    default:
        why = g_strdup("it sent an unexpected answer");
    }
    set_refusal(error, why);
    return LH_HANDSHAKE_REFUSED;
}

/* ---- the server ---- */

void
lh_handshake_answer(LhHandshake *h, int socket)
{
    *h = (LhHandshake){ .socket = socket };
    h->received = g_byte_array_new();
}

static LhHandshakeState
refuse_secret(const LhHandshake *h, const char *what, GError **error)
{
    g_autofree char *name = name_caller(&h->hello);
    g_autofree char *why = g_strdup_printf("%s %s", name, what);

    return refuse(h, why, error);
}

/* Its place may have been taken since its hello. */
static LhHandshakeState
welcome(const LhHandshake *h, const LhAnswer *answer, GError **error)
{
    g_autofree char *why = answer->judge(answer->owner, &h->hello);
    g_autoptr(GBytes) proof = NULL;

    if (why != NULL)
        return refuse(h, why, error);
    if (answer->secret->bytes > 0)
        proof = prove(answer->secret, ANSWERER, &h->hello, h->nonce);
    return say_or_refuse(h, LH_FRAME_WELCOME, proof, LH_HANDSHAKE_IN, error);
}

static LhHandshakeState
take_hello(LhHandshake *h, const LhAnswer *answer, GBytes *content, GError **error)
{
    g_autoptr(GBytes) nonce = NULL;
    g_autofree char *why = NULL;

    if (!lh_hello_unpack(content, &h->hello))
        return refuse(h, "it does not say who it is", error);
    if ((why = answer->judge(answer->owner, &h->hello)) != NULL)
        return refuse(h, why, error);
    h->heard = true;
    if (h->hello.has_secret != answer->secret->given)
        return refuse_secret(h,
                             h->hello.has_secret
                                 ? "has a secret, and the process it connects to has none"
                                 : "has no secret, and the process it connects to has one",
                             error);
    if (answer->secret->bytes == 0)
        return welcome(h, answer, error);
    if (!draw_nonce(h->nonce, error))
        return LH_HANDSHAKE_REFUSED;
    nonce = g_bytes_new(h->nonce, sizeof(h->nonce));
    return say_or_refuse(h, LH_FRAME_CHALLENGE, nonce, LH_HANDSHAKE_WAITS, error);
}

static LhHandshakeState
take_call(LhHandshake *h, const LhAnswer *answer, const LhControlFrame *frame, GError **error)
{
    if (!h->heard && frame->kind == LH_FRAME_HELLO)
        return take_hello(h, answer, frame->content, error);
    if (!h->heard || frame->kind != LH_FRAME_PROOF)
        return refuse(h, "it does not say who it is", error);
    if (!is_proof(frame->content, answer->secret, CALLER, h))
        return refuse_secret(h, "has a wrong secret", error);
    return welcome(h, answer, error);
}

/* ---- both ---- */

LhHandshakeState
lh_handshake_move(LhHandshake *h, const LhAnswer *answer, GError **error)
{
    LhHandshakeState state = LH_HANDSHAKE_WAITS;
    LhControlFrame frame;
    GError *broken = NULL;
    int taken;

    while (state == LH_HANDSHAKE_WAITS && (taken = hear(h, answer, &frame, &broken)) != 0) {
        if (taken < 0) {
            state = answer != NULL ? refuse(h, broken->message, NULL) : LH_HANDSHAKE_REFUSED;
            g_propagate_error(error, broken);
            break;
        }
        state =
            answer != NULL ? take_call(h, answer, &frame, error) : take_answer(h, &frame, error);
        lh_control_frame_clear(&frame);
    }
    return state;
}

void
lh_handshake_put_off(LhHandshake *h)
{
    (void)say(h, LH_FRAME_BUSY, NULL);
}

int
lh_handshake_take_socket(LhHandshake *h)
{
    const int socket = h->socket;

    h->socket = -1;
    lh_handshake_clear(h);
    return socket;
}

void
lh_handshake_clear(LhHandshake *h)
{
    if (h->socket >= 0)
        close(h->socket);
    h->socket = -1;
    g_clear_pointer(&h->received, g_byte_array_unref);
}
