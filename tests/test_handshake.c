/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authentication between processes: handshakes whose bytes a test forwards, changes, replays or
 * forges; and where the secret is read from.
 */
#include "runtime/process/handshake.h"

#include "frame_of.h"
#include "run_tests.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- handshakes ---- */

static const char secret_text[] = "a secret of as many characters as it takes";
/* The key used if no process was given a secret: the first process announces it to the others. */
static const char announced_key[] = "the key that the first process tells all others";

static LhSecret
secret_of(const char *text)
{
    LhSecret secret = { .bytes = text == NULL ? 0 : strlen(text),
                        .given = text != NULL && text != announced_key };

    if (text != NULL)
        memcpy(secret.text, text, secret.bytes);
    return secret;
}

/* Both ends of a handshake in one process, and what each has received. */
typedef struct {
    LhSecret of_caller, of_answerer;
    LhHandshake caller, answerer;
    LhHandshakeState called, answered;
    GError *call_error, *answer_error;
    int ends[2][2]; /* [0][0] is the caller's end and [1][0] the answerer's */
    GByteArray *said[2];
} Meeting;

static char *
judge_nobody(void *owner, const LhHello *hello)
{
    (void)owner;
    return hello->rank == 9 ? g_strdup("rank 9 is one too many") : NULL;
}

static void
begin_meeting(Meeting *m, const char *of_caller, const char *of_answerer)
{
    LhHello hello = {
        .port = LH_PORT_START, .rank = 1, .ranks = 2, .token = { 5 }, .host = "node1"
    };

    *m = (Meeting){ .of_caller = secret_of(of_caller), .of_answerer = secret_of(of_answerer) };
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, m->ends[i]), 0);
        m->said[i] = g_byte_array_new();
    }
    ck_assert(lh_handshake_call(&m->caller, m->ends[0][0], &hello, &m->of_caller, NULL));
    lh_handshake_answer(&m->answerer, m->ends[1][0]);
}

static void
end_meeting(Meeting *m)
{
    for (int i = 0; i < 2; i++) {
        close(m->ends[i][1]);
        g_byte_array_unref(m->said[i]);
    }
    lh_handshake_clear(&m->caller);
    lh_handshake_clear(&m->answerer);
    g_clear_error(&m->call_error);
    g_clear_error(&m->answer_error);
}

/* Advances both ends while they wait. */
static void
move_both(Meeting *m)
{
    const LhAnswer answer = { &m->of_answerer, judge_nobody, NULL };

    if (m->called == LH_HANDSHAKE_WAITS)
        m->called = lh_handshake_move(&m->caller, NULL, &m->call_error);
    if (m->answered == LH_HANDSHAKE_WAITS)
        m->answered = lh_handshake_move(&m->answerer, &answer, &m->answer_error);
}

/* Carries one byte from one end to the other; false if there is none. */
static bool
carry(Meeting *m, int from)
{
    unsigned char byte;

    if (recv(m->ends[from][1], &byte, 1, MSG_DONTWAIT) != 1)
        return false;
    g_byte_array_append(m->said[from], &byte, 1);
    (void)send(m->ends[1 - from][1], &byte, 1, MSG_NOSIGNAL);
    return true;
}

static void
meet(Meeting *m)
{
    do {
        move_both(m);
    } while (carry(m, 0) || carry(m, 1));
}

static const struct {
    const char *of_caller, *of_answerer, *call_words, *answer_words; /* NULL: accepted */
} meetings[] = {
    { NULL, NULL, NULL, NULL },
    { secret_text, secret_text, NULL, NULL },
    { NULL, secret_text, "rank 1 on host node1 has no secret",
      "rank 1 on host node1 has no secret" },
    { secret_text, NULL,
      "rank 1 on host node1 has a secret, and the process it connects to has none",
      "rank 1 on host node1 has a secret, and the process it connects to has none" },
    { "another secret of as many characters", secret_text,
      "rank 1 on host node1 has a wrong secret", "rank 1 on host node1 has a wrong secret" },
    { announced_key, announced_key, NULL, NULL },
    { announced_key, secret_text, "rank 1 on host node1 has no secret",
      "rank 1 on host node1 has no secret" },
    { secret_text, announced_key,
      "rank 1 on host node1 has a secret, and the process it connects to has none",
      "rank 1 on host node1 has a secret, and the process it connects to has none" },
    { "another key of as many characters", announced_key,
      "rank 1 on host node1 has a secret, and the process it connects to has none",
      "rank 1 on host node1 has a secret, and the process it connects to has none" },
};

START_TEST(secrets_are_proven)
{
    Meeting m;

    begin_meeting(&m, meetings[_i].of_caller, meetings[_i].of_answerer);
    meet(&m);
    ck_assert_int_eq(m.called,
                     meetings[_i].call_words == NULL ? LH_HANDSHAKE_IN : LH_HANDSHAKE_REFUSED);
    ck_assert_int_eq(m.answered, m.called);
    if (meetings[_i].call_words != NULL) {
        ck_assert_ptr_nonnull(strstr(m.call_error->message, meetings[_i].call_words));
        ck_assert_ptr_nonnull(strstr(m.answer_error->message, meetings[_i].answer_words));
    }
    for (int i = 0; i < 2; i++) { /* it is never sent */
        g_byte_array_append(m.said[i], (const guint8 *)"", 1);
        ck_assert_ptr_null(memmem(m.said[i]->data, m.said[i]->len, secret_text, 12));
    }
    end_meeting(&m);
}
END_TEST

/* A replayed message convinces neither side. */
START_TEST(proofs_are_not_replayed)
{
    Meeting first, again;

    begin_meeting(&first, secret_text, secret_text);
    meet(&first);
    ck_assert_int_eq(first.answered, LH_HANDSHAKE_IN);
    begin_meeting(&again, secret_text, secret_text);
    (void)send(again.ends[1][1], first.said[0]->data, first.said[0]->len, 0);
    (void)send(again.ends[0][1], first.said[1]->data, first.said[1]->len, 0);
    move_both(&again);
    ck_assert_str_eq(again.answer_error->message, "rank 1 on host node1 has a wrong secret");
    ck_assert_str_eq(again.call_error->message, "it has a wrong secret");
    end_meeting(&first);
    end_meeting(&again);
}
END_TEST

/* Receives one frame from the other end, asserting its kind. */
static GBytes *
hear_frame(int socket, LhControlFrameKind kind)
{
    g_autoptr(GByteArray) received = g_byte_array_new();
    LhControlFrame frame;
    unsigned char byte;

    while (lh_control_frame_take(received, LH_FRAME_TEXT_BYTES, &frame, NULL) == 0) {
        ck_assert_int_eq(recv(socket, &byte, 1, MSG_DONTWAIT), 1);
        g_byte_array_append(received, &byte, 1);
    }
    ck_assert_int_eq(frame.kind, kind);
    return frame.content;
}

static void
say_frame(int socket, LhControlFrameKind kind, GBytes *content)
{
    g_autoptr(GByteArray) frame = frame_of(kind, content);

    ck_assert_int_eq(send(socket, frame->data, frame->len, MSG_NOSIGNAL), (ssize_t)frame->len);
}

/* Without the secret nobody can pose as a called member: not by returning the caller's own proof,
 * not by sending no challenge, and not by challenging twice. */
START_TEST(impostors_are_not_believed)
{
    static const char *const words[] = { "it has a wrong secret",
                                         "it did not ask for the secret, so it has none",
                                         "it sent an unexpected challenge" };
    g_autoptr(GBytes) nonce = g_bytes_new_take(g_malloc0(LH_NONCE_BYTES), LH_NONCE_BYTES);
    g_autoptr(GBytes) nothing = g_bytes_new(NULL, 0);
    g_autoptr(GBytes) hello = NULL;
    Meeting m;

    begin_meeting(&m, secret_text, NULL);
    hello = hear_frame(m.ends[0][1], LH_FRAME_HELLO);
    if (_i != 1)
        say_frame(m.ends[0][1], LH_FRAME_CHALLENGE, nonce);
    m.called = lh_handshake_move(&m.caller, NULL, &m.call_error);
    if (_i == 0) {
        g_autoptr(GBytes) proof = hear_frame(m.ends[0][1], LH_FRAME_PROOF);

        say_frame(m.ends[0][1], LH_FRAME_WELCOME, proof);
    } else if (_i == 1) {
        say_frame(m.ends[0][1], LH_FRAME_WELCOME, nothing);
    } else {
        say_frame(m.ends[0][1], LH_FRAME_CHALLENGE, nonce);
    }
    ck_assert_int_eq(m.called, LH_HANDSHAKE_WAITS);
    m.called = lh_handshake_move(&m.caller, NULL, &m.call_error);
    ck_assert_int_eq(m.called, LH_HANDSHAKE_REFUSED);
    ck_assert_str_eq(m.call_error->message, words[_i]);
    end_meeting(&m);
}
END_TEST

/* A proof holds for one call: not for another rank, port, channel or token. */
START_TEST(proofs_are_of_one_call)
{
    for (guint at = 0; at < LH_HELLO_BYTES; at++) {
        Meeting m;

        begin_meeting(&m, secret_text, secret_text);
        for (guint i = 0; i < LH_FRAME_HEADER_BYTES + LH_HELLO_BYTES; i++) {
            unsigned char byte;

            ck_assert_int_eq(recv(m.ends[0][1], &byte, 1, MSG_DONTWAIT), 1);
            if (i == LH_FRAME_HEADER_BYTES + at)
                byte ^= at == 0 ? LH_PORT_START ^ LH_PORT_DATA : 1;
            ck_assert_int_eq(send(m.ends[1][1], &byte, 1, 0), 1);
        }
        meet(&m);
        ck_assert_int_eq(m.answered, LH_HANDSHAKE_REFUSED);
        ck_assert_int_eq(m.called, LH_HANDSHAKE_REFUSED);
        end_meeting(&m);
    }
}
END_TEST

static const struct {
    const char *bytes;
    gsize count;
    const char *words;
} rude_words[] = {
    { "GET / HTTP/1.1", 14, "it does not send longhaul frames" },
    { "lhF1\0\0\0\0\xff\xff\xff\xff", 12, "it announces 4294967295 bytes, where at most" },
    { "lhF1\0\0\0\0\x02\0\0\0me", 14, "it does not say who it is" },
    { "lhF1\x06\0\0\0\0\0\0\0", 12, "it does not say who it is" },
    { "lhF1\x02\0\0\0\0\0\0\0", 12, "it does not say who it is" },
};

START_TEST(rude_callers_are_refused)
{
    Meeting m;

    begin_meeting(&m, secret_text, secret_text);
    (void)send(m.ends[1][1], rude_words[_i].bytes, rude_words[_i].count, 0);
    move_both(&m);
    ck_assert_int_eq(m.answered, LH_HANDSHAKE_REFUSED);
    ck_assert_msg(g_str_has_prefix(m.answer_error->message, rude_words[_i].words), "%s",
                  m.answer_error->message);
    end_meeting(&m);
}
END_TEST

/* ---- where it is read ---- */

static const struct {
    const char *value, *file; /* of the variable; of the file */
    mode_t mode;
    const char *words; /* NULL: the secret is valid */
} secrets[] = {
    { NULL, NULL, 0, NULL },
    { secret_text, NULL, 0, "characters, printable ASCII" }, /* it has blanks */
    { "0123456789abcdef0123456789abcdef", NULL, 0, NULL },
    { "0123456789abcdef0123456789abcde", NULL, 0, "LONGHAUL_SECRET: the secret is too short" },
    { "", NULL, 0, "LONGHAUL_SECRET: the secret is too short" },
    { NULL, "0123456789abcdef0123456789abcdef\n", 0600, NULL },
    { NULL, "0123456789abcdef0123456789abcdef", 0400, NULL },
    { NULL, "0123456789abcdef0123456789abcdef\n", 0640, "(mode 0640): allowed is mode 0600" },
    { NULL, "0123456789abcdef0123456789abcdef\n", 0604, "(mode 0604): allowed is mode 0600" },
    { NULL, "0123456789abcdef0123456789abcde\n", 0600, "LONGHAUL_SECRET_FILE: the secret is too" },
    { NULL, "0123456789abcdef0123456789abcdef\nx", 0600, "has characters that are not allowed" },
    { "0123456789abcdef0123456789abcdef", "x", 0600, "are both in the environment" },
};

START_TEST(secrets_are_read)
{
    g_autofree char *folder = g_dir_make_tmp(NULL, NULL);
    g_autofree char *file = g_build_filename(folder, "secret", NULL);
    g_autoptr(GError) error = NULL;
    LhSecret secret;
    bool ok;

    if (secrets[_i].value != NULL)
        g_setenv("LONGHAUL_SECRET", secrets[_i].value, TRUE);
    if (secrets[_i].file != NULL) {
        ck_assert(g_file_set_contents(file, secrets[_i].file, -1, NULL));
        ck_assert_int_eq(chmod(file, secrets[_i].mode), 0);
        g_setenv("LONGHAUL_SECRET_FILE", file, TRUE);
    }
    ok = lh_secret_read(&secret, &error);
    ck_assert_msg(ok == (secrets[_i].words == NULL), "%d", _i);
    ck_assert_uint_eq(secret.bytes, ok && _i > 0 ? 32 : 0);
    if (!ok) {
        ck_assert_msg(strstr(error->message, secrets[_i].words) != NULL, "%s", error->message);
        ck_assert_ptr_null(strstr(error->message, "0123456789"));
    }
    g_unsetenv("LONGHAUL_SECRET");
    g_unsetenv("LONGHAUL_SECRET_FILE");
    (void)remove(file);
    (void)remove(folder);
}
END_TEST

LH_TEST_MAIN_OF_LOOPS("handshake", { secrets_are_proven, G_N_ELEMENTS(meetings) },
                      { proofs_are_not_replayed, 1 }, { impostors_are_not_believed, 3 },
                      { proofs_are_of_one_call, 1 },
                      { rude_callers_are_refused, G_N_ELEMENTS(rude_words) },
                      { secrets_are_read, G_N_ELEMENTS(secrets) })
