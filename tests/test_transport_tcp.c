/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages over TCP: connections between two ends in one process, the addresses that processes
 * exchange, and a transport of one rank that sends to itself while strangers connect.
 */
#include "runtime/api/transport.h"
#include "runtime/process/endpoint.h"
#include "runtime/process/handshake.h"
#include "runtime/process/socket.h"
#include "runtime/process/tcp_channel.h"

#include "frame_of.h"
#include "run_tests.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGES 100
#define SEEDS 8
#define PIECES_MAX 100
#define PIECE_BYTES_MAX 3000
#define MANY_TURNS 1000000
#define PATIENCE_US 100000000
#define WAIT_US 1000
#define STRANGERS 1500
#define FILES 64

/* ---- messages ---- */

typedef struct {
    LhMessage message;
    LhPiece *pieces;
    unsigned char *data;
    guint ended; /* position in the order of ends, from 1; 0: not ended */
    char *error;
} Letter;

static guint ends;

static void
note_end(LhMessage *message, GError *error)
{
    Letter *letter = message->owner;

    ck_assert_uint_eq(letter->ended, 0);
    letter->ended = ++ends;
    if (error != NULL)
        letter->error = g_strdup(error->message);
    g_clear_error(&error);
}

/* @bytes in pieces of random sizes, some empty, with gaps between them. */
static Letter *
new_letter(GRand *chance, bool send, uint32_t rank, uint32_t peer, uint32_t channel, uint64_t bytes)
{
    Letter *letter = g_new0(Letter, 1);
    uint64_t left = bytes, at = 0;
    uint32_t count = 0;

    letter->pieces = g_new0(LhPiece, PIECES_MAX);
    letter->data = g_malloc0(2 * bytes + PIECES_MAX);
    while (left > 0) {
        const uint64_t any = (uint64_t)g_rand_int_range(chance, 0, PIECE_BYTES_MAX);
        const uint64_t part = count == PIECES_MAX - 1 ? left : MIN(left, any);

        letter->pieces[count++] = (LhPiece){ letter->data + at, part };
        at += part + (part > 0 ? 1 : 0);
        left -= part;
    }
    letter->message = (LhMessage){ .send = send,
                                   .rank = rank,
                                   .peer = peer,
                                   .channel = channel,
                                   .pieces = letter->pieces,
                                   .pieces_count = count,
                                   .bytes = bytes,
                                   .complete = note_end,
                                   .owner = letter };
    return letter;
}

/* The k-th byte of a message, whatever its pieces. */
static void
write_letter(Letter *letter, unsigned seed)
{
    unsigned value = seed * 2654435761U;

    for (uint32_t i = 0; i < letter->message.pieces_count; i++) {
        for (uint64_t k = 0; k < letter->pieces[i].bytes; k++)
            letter->pieces[i].data[k] =
                (unsigned char)((value = value * 1103515245U + 12345U) >> 16);
    }
}

static bool
same_letters(const Letter *a, const Letter *b)
{
    g_autoptr(GByteArray) x = g_byte_array_new();
    g_autoptr(GByteArray) y = g_byte_array_new();

    for (uint32_t i = 0; i < a->message.pieces_count; i++)
        g_byte_array_append(x, a->pieces[i].data, (guint)a->pieces[i].bytes);
    for (uint32_t i = 0; i < b->message.pieces_count; i++)
        g_byte_array_append(y, b->pieces[i].data, (guint)b->pieces[i].bytes);
    return x->len == y->len && (x->len == 0 || memcmp(x->data, y->data, x->len) == 0);
}

static void
free_letter(void *data)
{
    Letter *letter = data;

    g_free(letter->pieces);
    g_free(letter->data);
    g_free(letter->error);
    g_free(letter);
}

static uint64_t
random_bytes(GRand *chance)
{
    switch (g_rand_int_range(chance, 0, 4)) {
    case 0:
        return 0;
    case 1:
        return (uint64_t)g_rand_int_range(chance, 1, 9);
    case 2:
        return (uint64_t)g_rand_int_range(chance, 1, 5000);
    default:
        return (uint64_t)g_rand_int_range(chance, 1, 200000);
    }
}

/* ---- a connection ---- */

typedef struct {
    LhTcpChannel sender, receiver;
} Pair;

static void
init_pair(Pair *p)
{
    int ends_of[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_of), 0);
    lh_tcp_channel_init(&p->sender, true, 3, 5, 7);
    lh_tcp_channel_init(&p->receiver, false, 5, 3, 7);
    p->sender.socket = ends_of[0];
    p->receiver.socket = ends_of[1];
    ends = 0;
}

static void
clear_pair(Pair *p)
{
    lh_tcp_channel_clear(&p->sender);
    lh_tcp_channel_clear(&p->receiver);
}

/* In any order of posting every message arrives complete and in order, and its sender is
 * notified last. */
static void
send_random_messages(guint32 seed)
{
    g_autoptr(GRand) chance = g_rand_new_with_seed(seed);
    g_autoptr(GPtrArray) sent = g_ptr_array_new_with_free_func(free_letter);
    g_autoptr(GPtrArray) got = g_ptr_array_new_with_free_func(free_letter);
    guint posted = 0, awaited = 0, turns = 0;
    Pair p;

    init_pair(&p);
    for (guint i = 0; i < MESSAGES; i++) {
        const uint64_t bytes = random_bytes(chance);

        g_ptr_array_add(sent, new_letter(chance, true, 3, 5, 7, bytes));
        g_ptr_array_add(got, new_letter(chance, false, 5, 3, 7, bytes));
        write_letter(g_ptr_array_index(sent, i), i);
    }
    while (ends < 2 * MESSAGES && turns++ < MANY_TURNS) {
        const int what = g_rand_int_range(chance, 0, 4);

        if (what == 0 && posted < MESSAGES)
            lh_tcp_channel_post(&p.sender, &((Letter *)g_ptr_array_index(sent, posted++))->message);
        else if (what == 1 && awaited < MESSAGES)
            lh_tcp_channel_post(&p.receiver,
                                &((Letter *)g_ptr_array_index(got, awaited++))->message);
        else
            lh_tcp_channel_move(what == 2 ? &p.sender : &p.receiver);
    }
    ck_assert_uint_eq(ends, 2 * MESSAGES);
    for (guint i = 0; i < MESSAGES; i++) {
        const Letter *a = g_ptr_array_index(sent, i), *b = g_ptr_array_index(got, i);

        ck_assert(a->error == NULL && b->error == NULL);
        ck_assert(same_letters(a, b));
        ck_assert_uint_lt(b->ended, a->ended);
        ck_assert(i == 0 || b->ended > ((Letter *)g_ptr_array_index(got, i - 1))->ended);
        ck_assert(i == 0 || a->ended > ((Letter *)g_ptr_array_index(sent, i - 1))->ended);
    }
    ck_assert(lh_tcp_channel_is_idle(&p.sender) && lh_tcp_channel_is_idle(&p.receiver));
    clear_pair(&p);
}

START_TEST(messages_arrive_in_order)
{
    for (guint32 seed = 0; seed < SEEDS; seed++)
        send_random_messages(seed);
}
END_TEST

/* A message does not start before both ends have posted it. */
START_TEST(messages_wait_for_both_ends)
{
    g_autoptr(GRand) chance = g_rand_new_with_seed(1);
    Letter *a = new_letter(chance, true, 3, 5, 7, 10), *b = new_letter(chance, false, 5, 3, 7, 10);
    unsigned char byte;
    Pair p;

    init_pair(&p);
    lh_tcp_channel_post(&p.sender, &a->message);
    for (int i = 0; i < 10; i++)
        lh_tcp_channel_move(&p.sender);
    ck_assert_int_eq(recv(p.receiver.socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK), -1);
    lh_tcp_channel_post(&p.receiver, &b->message);
    lh_tcp_channel_move(&p.receiver);
    ck_assert(lh_tcp_channel_move(&p.sender) == false && ends == 0);
    ck_assert(lh_tcp_channel_move(&p.receiver));
    ck_assert(b->ended == 1 && a->ended == 0);
    ck_assert(lh_tcp_channel_move(&p.sender));
    ck_assert_uint_eq(a->ended, 2);
    free_letter(a);
    free_letter(b);
    clear_pair(&p);
}
END_TEST

/* Faults of the other end that end a connection, and their error messages. */
typedef struct {
    bool sends; /* this end sends */
    const char *bytes;
    gsize count;
    bool closes;
    const char *words;
} Trouble;

static const Trouble troubles[] = {
    { true, "", 0, true, "cannot send to rank 9: its process is gone" },
    { true, "C", 1, true, "cannot send to rank 9: its process is gone" },
    { true, "X", 1, false, "cannot send to rank 9: it sent an unexpected answer" },
    { true, "R", 1, false, "cannot send to rank 9: it sent an unexpected answer" },
    { false, "", 0, true, "cannot receive from rank 9: its process is gone" },
    { false, "\x0a\0\0\0\0\0\0\0half", 12, true,
      "cannot receive from rank 9: its process is gone" },
    { false, "\x0b\0\0\0\0\0\0\0hello world", 19, false,
      "cannot receive from rank 9: it sends 11 bytes where 10 are expected" },
    { false, "\x0a\0\0\0\0\0\0\1helloworld", 18, false,
      "cannot receive from rank 9: it sends 72057594037927946 bytes where 10 are expected" },
};

/* Both messages of this end fail, and so does one posted later. */
static void
bring_about(const Trouble *trouble)
{
    g_autoptr(GRand) chance = g_rand_new_with_seed(1);
    Letter *letters[3];
    LhTcpChannel wire;
    int ends_of[2];

    ends = 0;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_of), 0);
    lh_tcp_channel_init(&wire, trouble->sends, 4, 9, 0);
    wire.socket = ends_of[0];
    for (guint i = 0; i < 3; i++)
        letters[i] = new_letter(chance, trouble->sends, 4, 9, 0, 10);
    lh_tcp_channel_post(&wire, &letters[0]->message);
    lh_tcp_channel_post(&wire, &letters[1]->message);
    ck_assert_int_eq(send(ends_of[1], trouble->bytes, trouble->count, MSG_NOSIGNAL),
                     (ssize_t)trouble->count);
    if (trouble->closes)
        close(ends_of[1]);
    for (int i = 0; i < 4 && wire.socket >= 0; i++)
        lh_tcp_channel_move(&wire);
    lh_tcp_channel_post(&wire, &letters[2]->message);
    if (strstr(trouble->words, "are expected") != NULL) /* none of it is accepted */
        ck_assert_uint_eq(letters[0]->data[0], 0);
    for (guint i = 0; i < 3; i++) {
        ck_assert_uint_eq(letters[i]->ended, i + 1);
        ck_assert_ptr_nonnull(letters[i]->error);
        ck_assert_msg(g_str_has_prefix(letters[i]->error, trouble->words), "%s", letters[i]->error);
        free_letter(letters[i]);
    }
    if (!trouble->closes)
        close(ends_of[1]);
    lh_tcp_channel_clear(&wire);
}

START_TEST(wires_end_with_words)
{
    for (gsize i = 0; i < G_N_ELEMENTS(troubles); i++)
        bring_about(&troubles[i]);
}
END_TEST

/* Byte by byte: a message ends with its last byte, and the receipt is sent then. */
START_TEST(messages_end_with_their_last_byte)
{
    static const unsigned char bytes[] = { 5, 0, 0, 0, 0, 0, 0, 0, 'h', 'e', 'l', 'l', 'o' };
    g_autoptr(GRand) chance = g_rand_new_with_seed(3);
    Letter *b = new_letter(chance, false, 5, 3, 7, 5);
    char answers[4] = "";
    Pair p;

    init_pair(&p);
    lh_tcp_channel_post(&p.receiver, &b->message);
    for (gsize i = 0; i < sizeof(bytes); i++) {
        ck_assert_uint_eq(b->ended, 0);
        lh_tcp_channel_move(&p.receiver);
        ck_assert_int_eq(send(p.sender.socket, &bytes[i], 1, 0), 1);
        lh_tcp_channel_move(&p.receiver);
    }
    ck_assert(b->ended == 1 && b->error == NULL);
    ck_assert_int_eq(recv(p.sender.socket, answers, sizeof(answers), MSG_DONTWAIT), 2);
    ck_assert_mem_eq(answers, "CR", 2);
    free_letter(b);
    clear_pair(&p);
}
END_TEST

/* Data that arrives when none is expected. */
START_TEST(wires_expect_nothing_more)
{
    Pair p;

    init_pair(&p);
    ck_assert_int_eq(send(p.sender.socket, "x", 1, 0), 1);
    ck_assert(!lh_tcp_channel_move(&p.receiver));
    ck_assert_str_eq(p.receiver.failure, "it sent unexpected data");
    clear_pair(&p);
}
END_TEST

/* ---- endpoints ---- */

static LhAddress
address(const char *text, uint32_t bits)
{
    LhAddress a = { .v6 = strchr(text, ':') != NULL, .prefix_bits = bits };

    ck_assert_int_eq(inet_pton(a.v6 ? AF_INET6 : AF_INET, text, a.bytes), 1);
    return a;
}

static char *
order_of(const LhEndpoint *here, const LhEndpoint *there)
{
    g_autoptr(GArray) order = g_array_new(FALSE, FALSE, sizeof(LhAddress));
    GString *text = g_string_new(NULL);

    lh_endpoint_order(here, there, order);
    for (guint i = 0; i < order->len; i++) {
        g_autofree char *one = lh_address_text(&g_array_index(order, LhAddress, i));

        g_string_append_printf(text, "%s%s", i > 0 ? " " : "", one);
    }
    return g_string_free(text, FALSE);
}

START_TEST(near_addresses_come_first)
{
    LhEndpoint here = { .machine = { 1 }, .port = 1, .count = 3 };
    LhEndpoint there = { .machine = { 2 }, .port = 2, .count = 5 };
    g_autofree char *far = NULL;
    g_autofree char *same = NULL;

    here.addresses[0] = address("172.17.0.1", 16);
    here.addresses[1] = address("10.1.2.3", 20);
    here.addresses[2] = address("fd00:1::3", 64);
    there.addresses[0] = address("172.17.0.1", 16); /* a container bridge */
    there.addresses[1] = address("192.168.7.9", 24);
    there.addresses[2] = address("fd00:1::7", 64);
    there.addresses[3] = address("10.1.15.9", 20);
    there.addresses[4] = address("10.1.16.9", 20);
    far = order_of(&here, &there);
    ck_assert_str_eq(far, "fd00:1::7 10.1.15.9 192.168.7.9 10.1.16.9");
    there.machine[0] = 1;
    same = order_of(&here, &there);
    ck_assert_str_eq(same, "127.0.0.1");
}
END_TEST

START_TEST(whereabouts_are_packed_and_checked)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    const gsize head = LH_MACHINE_BYTES + LH_KEY_BYTES;
    LhEndpoint here, read;
    GError *error = NULL;

    ck_assert(lh_endpoint_here(&here, &error));
    here.port = 54321;
    here.count = 2;
    here.addresses[0] = address("10.1.2.3", 20);
    here.addresses[1] = address("fd00:1::3", 64);
    lh_endpoint_pack(&here, bytes);
    ck_assert_uint_eq(bytes->len, lh_endpoint_packed_bytes());
    ck_assert(lh_endpoint_unpack(bytes->data, &read));
    ck_assert_mem_eq(read.machine, here.machine, sizeof(here.machine));
    ck_assert_mem_eq(read.key, here.key, sizeof(here.key));
    ck_assert(read.port == 54321 && read.count == 2);
    ck_assert(read.addresses[1].v6 && read.addresses[1].prefix_bits == 64);
    ck_assert_mem_eq(read.addresses[1].bytes, here.addresses[1].bytes, 16);
    bytes->data[head + 2] = LH_ADDRESSES_MAX + 1;
    ck_assert(!lh_endpoint_unpack(bytes->data, &read));
    bytes->data[head + 2] = 2;
    bytes->data[head + 4] = 33; /* bits of an IPv4 network */
    ck_assert(!lh_endpoint_unpack(bytes->data, &read));
    bytes->data[head + 4] = 20;
    bytes->data[head + 3] = 2; /* unknown family */
    ck_assert(!lh_endpoint_unpack(bytes->data, &read));
    bytes->data[head + 3] = 0;
    memset(bytes->data + head, 0, 2); /* no port */
    ck_assert(!lh_endpoint_unpack(bytes->data, &read));
}
END_TEST

/* Interfaces can be selected, as with NCCL's variable. */
START_TEST(interfaces_are_chosen)
{
    g_autoptr(GError) error = NULL;
    LhEndpoint all, loopback, none;

    ck_assert(lh_endpoint_here(&all, NULL) && !all.chosen);
    g_setenv("LONGHAUL_SOCKET_IFNAME", "no-such-interface,lo", TRUE);
    ck_assert(lh_endpoint_here(&loopback, NULL) && loopback.chosen);
    g_setenv("LONGHAUL_SOCKET_IFNAME", "no-such-interface,", TRUE);
    ck_assert(!lh_endpoint_here(&none, &error));
    g_unsetenv("LONGHAUL_SOCKET_IFNAME");
    ck_assert_uint_eq(loopback.count, 0); /* loopback is not announced */
    ck_assert_mem_eq(all.machine, loopback.machine, sizeof(all.machine));
    ck_assert_mem_ne(all.key, loopback.key, sizeof(all.key));
    ck_assert_ptr_nonnull(strstr(error->message, "\"no-such-interface,\"; interfaces: lo"));
}
END_TEST

/* ---- the transport ---- */

static LhEndpoint told;  /* of the one rank of these tests */
static LhEndpoint other; /* of a second rank, if it has a port */

static bool
share(void *control, const GByteArray *bytes, gsize limit, GByteArray *all, GError **error)
{
    (void)control;
    (void)error;
    ck_assert(lh_endpoint_unpack(bytes->data, &told));
    g_byte_array_append(all, bytes->data, bytes->len);
    if (other.port != 0)
        lh_endpoint_pack(&other, all);
    ck_assert_uint_le(bytes->len, limit);
    return true;
}

static void *
open_alone(void)
{
    static const LhControl table = { .name = "alone", .share = share };
    const LhOpenControl control = { &table, NULL, { 0, 1 } };
    const LhTransportParams params = { .ranks = other.port != 0 ? 2 : 1,
                                       .channels = 4,
                                       .control = &control };
    void *state = lh_transport_tcp.open(&params, NULL);

    ck_assert_ptr_nonnull(state);
    return state;
}

/* Connects and sends something. */
static int
call(const void *words, gsize bytes)
{
    const struct sockaddr_in to = { .sin_family = AF_INET,
                                    .sin_port = htons(told.port),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const int caller = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(connect(caller, (const struct sockaddr *)&to, sizeof(to)), 0);
    ck_assert_int_eq(send(caller, words, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
    return caller;
}

/* The hello of rank @from calling rank @to. */
static LhHello
hello_of(uint32_t from, uint32_t to, uint32_t channel)
{
    LhHello hello = {
        .port = LH_PORT_DATA, .rank = from, .ranks = 1, .to = to, .channel = channel
    };

    memcpy(hello.token, told.key, LH_KEY_BYTES);
    return hello;
}

/* Its first @bytes only. */
static int
call_with(const LhHello *hello, guint bytes)
{
    g_autoptr(GBytes) content = lh_hello_pack(hello);
    g_autoptr(GByteArray) frame = frame_of(LH_FRAME_HELLO, content);

    return call(frame->data, MIN(frame->len, bytes));
}

/* Whether the transport closes the caller's connection, with this message. */
static bool
hangs_up(void *state, int caller, const char *words)
{
    const gint64 until = g_get_monotonic_time() + PATIENCE_US;
    g_autoptr(GString) heard = g_string_new(NULL);
    ssize_t count = -1;
    char byte;

    while (count != 0 && g_get_monotonic_time() < until) {
        lh_transport_tcp.poll(state, WAIT_US);
        count = recv(caller, &byte, 1, MSG_DONTWAIT);
        if (count > 0)
            g_string_append_c(heard, byte == '\0' ? '.' : byte);
        else if (count < 0 && errno == ECONNRESET)
            count = 0;
    }
    close(caller);
    return count == 0 && strstr(heard->str, words) != NULL;
}

/* Sends a message to itself on the channel; returns false if that fails. */
static bool
sends_to_itself(void *state, uint32_t channel, uint64_t bytes)
{
    const gint64 until = g_get_monotonic_time() + PATIENCE_US;
    g_autoptr(GRand) chance = g_rand_new_with_seed(channel);
    Letter *a = new_letter(chance, true, 0, 0, channel, bytes);
    Letter *b = new_letter(chance, false, 0, 0, channel, bytes);
    bool well;

    write_letter(a, channel);
    lh_transport_tcp.post(state, &a->message);
    lh_transport_tcp.post(state, &b->message);
    while ((a->ended == 0 || b->ended == 0) && g_get_monotonic_time() < until)
        lh_transport_tcp.poll(state, WAIT_US);
    ck_assert(a->ended != 0 && b->ended != 0);
    well = a->error == NULL && b->error == NULL && same_letters(a, b);
    free_letter(a);
    free_letter(b);
    return well;
}

START_TEST(strangers_are_hung_up_on)
{
    static const char not_here[] = "there is no channel 1 from rank 0 to rank";
    void *state = open_alone();
    LhHello hello;
    char words[36];

    ck_assert(sends_to_itself(state, 0, 3000000));
    memset(words, 'x', sizeof(words));
    ck_assert(hangs_up(state, call(words, sizeof(words)), "does not send longhaul frames"));
    hello = hello_of(0, 0, 1);
    hello.token[0] ^= 1;
    ck_assert(hangs_up(state, call_with(&hello, UINT_MAX), "another run: its key differs"));
    hello = hello_of(0, 0, 1);
    hello.port = LH_PORT_START;
    ck_assert(
        hangs_up(state, call_with(&hello, UINT_MAX), "it connects to the wrong port or rank"));
    hello = hello_of(1, 0, 1); /* a rank that there is not */
    ck_assert(hangs_up(state, call_with(&hello, UINT_MAX), "no channel 1 from rank 1"));
    for (uint32_t to = 1; to < 8; to++) { /* for another rank */
        hello = hello_of(0, to, 1);
        ck_assert(hangs_up(state, call_with(&hello, UINT_MAX), not_here));
    }
    hello = hello_of(0, 0, 0);
    ck_assert(hangs_up(state, call_with(&hello, UINT_MAX), "channel 0 from rank 0 is already"));
    hello = hello_of(0, 0, 65537);
    ck_assert(hangs_up(state, call_with(&hello, UINT_MAX), "no channel 65537 from rank 0"));
    hello = hello_of(0, 0, 1);
    close(call_with(&hello, 20)); /* half of it */
    ck_assert(sends_to_itself(state, 0, 10));
    ck_assert(sends_to_itself(state, 1, 100000));
    lh_transport_tcp.close(state);
    ck_assert_ptr_eq(open_alone(), state); /* connections persist */
    ck_assert(sends_to_itself(state, 1, 0));
    lh_transport_tcp.close(state);
}
END_TEST

/* Starts a process that reads from @orders what to send to whom and sends it over many
 * connections, which end with @orders. Start it before the limit on files. */
static pid_t
start_siege(int *orders)
{
    int ends_of[2];
    pid_t pid;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends_of), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        const struct rlimit many = { STRANGERS + 64, STRANGERS + 64 };
        unsigned char words[LH_FRAME_HEADER_BYTES + LH_HELLO_BYTES + 1];
        ssize_t bytes;

        close(ends_of[1]);
        if (setrlimit(RLIMIT_NOFILE, &many) != 0 ||
            read(ends_of[0], &told, sizeof(told)) != (ssize_t)sizeof(told) ||
            (bytes = read(ends_of[0], words, sizeof(words))) < 0)
            _exit(2);
        for (uint32_t i = 0; i < STRANGERS; i++)
            (void)call(words, (gsize)bytes - 1);
        _exit(read(ends_of[0], words, 1) == 0 ? 0 : 1);
    }
    close(ends_of[0]);
    *orders = ends_of[1];
    return pid;
}

/* Polls the transport until it has turned away @count strangers. */
static char *
hear_strangers(void *state, uint32_t count)
{
    const gint64 until = g_get_monotonic_time() + PATIENCE_US;
    char *words = NULL;

    do {
        g_free(words);
        lh_transport_tcp.poll(state, WAIT_US);
        words = lh_transport_tcp.strangers(state);
    } while ((words == NULL || g_ascii_strtoull(words, NULL, 10) < count) &&
             g_get_monotonic_time() < until);
    return words;
}

static void *
open_with_few_files(void)
{
    const struct rlimit few = { FILES, FILES };

    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    return open_alone();
}

/* With few descriptors, strangers are kept waiting and a member gets in past any number of them.
 * Each stranger sends the first @bytes of a valid hello. */
static void
get_past_strangers(bool has_secret, guint bytes, const char *why)
{
    g_autoptr(GByteArray) frame = NULL;
    g_autoptr(GBytes) content = NULL;
    g_autofree char *some = NULL;
    g_autofree char *words = NULL;
    int orders = -1, status = -1, spare;
    const pid_t pid = start_siege(&orders);
    void *state = open_with_few_files();
    LhHello hello = hello_of(0, 0, 0);

    hello.has_secret = has_secret;
    content = lh_hello_pack(&hello);
    frame = frame_of(LH_FRAME_HELLO, content);
    ck_assert_int_eq(send(orders, &told, sizeof(told), 0), (ssize_t)sizeof(told));
    bytes = MIN(bytes, frame->len);
    g_byte_array_set_size(frame, bytes + 1); /* an empty frame would mean the end */
    ck_assert_int_eq(send(orders, frame->data, frame->len, 0), (ssize_t)frame->len);
    some = hear_strangers(state, STRANGERS / 2);
    spare = dup(STDERR_FILENO); /* strangers do not take all descriptors */
    ck_assert_int_ge(spare, 0);
    close(spare);
    words = hear_strangers(state, STRANGERS - 2 * (FILES / 8));
    ck_assert_msg(strstr(words, why) != NULL, "%s", words);
    ck_assert(sends_to_itself(state, 0, 100000));
    ck_assert(sends_to_itself(state, 1, 100000));
    close(orders);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    lh_transport_tcp.close(state);
}

START_TEST(members_get_past_strangers)
{
    get_past_strangers(false, 0, " from 127.0.0.1 (it says nothing)");
}
END_TEST

START_TEST(members_get_past_half_words)
{
    get_past_strangers(false, LH_FRAME_HEADER_BYTES + LH_HELLO_BYTES - 1,
                       " from 127.0.0.1 (it does not say who it is)");
}
END_TEST

static void
take_all_files(GArray *taken)
{
    int one;

    while ((one = dup(STDERR_FILENO)) >= 0)
        g_array_append_val(taken, one);
    ck_assert_int_eq(errno, EMFILE);
}

static void
give_back(GArray *taken)
{
    for (guint i = 0; i < taken->len; i++)
        close(g_array_index(taken, int, i));
    g_array_set_size(taken, 0);
}

/* Without free descriptors, silent strangers are closed in favour of callers that send
 * something, and no more of them than needed. */
START_TEST(strangers_make_way)
{
    g_autoptr(GArray) taken = g_array_new(FALSE, FALSE, sizeof(int));
    void *state = open_with_few_files();
    const int first = call("", 0), second = call("", 0);
    g_autofree char *words = NULL;
    LhHello hello = hello_of(0, 1, 9);
    int caller;

    for (int i = 0; i < 10; i++)
        lh_transport_tcp.poll(state, WAIT_US);
    caller = call_with(&hello, UINT_MAX);
    take_all_files(taken);
    ck_assert(hangs_up(state, caller, "no channel 9"));
    words = lh_transport_tcp.strangers(state);
    ck_assert_msg(g_str_has_prefix(words, "2 connections were rejected: ") &&
                      strstr(words, "no connection could be accepted") == NULL,
                  "%s", words);
    give_back(taken);
    close(first);
    close(second);
    lh_transport_tcp.close(state);
}
END_TEST

/* Without descriptors nothing is accepted: the transport does not spin, reports it, and
 * continues once there are some. */
START_TEST(lack_of_files_is_waited_out)
{
    g_autoptr(GArray) taken = g_array_new(FALSE, FALSE, sizeof(int));
    g_autofree char *words = NULL;
    gint64 began_us;
    LhHello hello;
    void *state = open_with_few_files();
    int caller;

    hello = hello_of(0, 0, 9);
    caller = call_with(&hello, UINT_MAX);
    take_all_files(taken);
    lh_transport_tcp.poll(state, WAIT_US); /* it is notified of the caller but cannot accept */
    began_us = g_get_monotonic_time();
    for (int i = 0; i < 20; i++)
        lh_transport_tcp.poll(state, 10 * WAIT_US);
    ck_assert_int_ge(g_get_monotonic_time() - began_us, 5 * 10 * WAIT_US);
    words = lh_transport_tcp.strangers(state);
    ck_assert_str_eq(words, "for a while no connection could be accepted: Too many open files");
    give_back(taken);
    hello.to = 1;
    ck_assert(hangs_up(state, call_with(&hello, UINT_MAX), "no channel 9"));
    close(caller);
    ck_assert(sends_to_itself(state, 0, 100));
    lh_transport_tcp.close(state);
}
END_TEST

/* A caller at 127.0.0.@last that identifies itself, or sends nothing, and leaves. */
static void
visit_from(unsigned last, bool presents)
{
    const struct sockaddr_in to = { .sin_family = AF_INET,
                                    .sin_port = htons(told.port),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct sockaddr_in from = { .sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + last) };
    const LhHello hello = hello_of(7, 0, 0);
    g_autoptr(GBytes) content = lh_hello_pack(&hello);
    g_autoptr(GByteArray) frame = frame_of(LH_FRAME_HELLO, content);
    const int caller = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(caller, (const struct sockaddr *)&from, sizeof(from)), 0);
    ck_assert_int_eq(connect(caller, (const struct sockaddr *)&to, sizeof(to)), 0);
    if (presents)
        ck_assert_int_eq(send(caller, frame->data, frame->len, MSG_NOSIGNAL), (ssize_t)frame->len);
    close(caller);
}

/* Few addresses are named; those whose callers identified themselves come first. */
START_TEST(strangers_are_named_by_address)
{
    g_autofree char *few = NULL;
    g_autofree char *many = NULL;
    void *state = open_alone();

    for (unsigned last = 2; last <= 9; last++)
        visit_from(last, false);
    few = hear_strangers(state, 8);
    ck_assert_msg(strstr(few, "1 from 127.0.0.9 (it ") != NULL && strstr(few, "elsewhere") == NULL,
                  "%s", few);
    visit_from(10, false);
    visit_from(11, true);
    visit_from(11, false);
    many = hear_strangers(state, 11);
    ck_assert_msg(g_str_has_prefix(many, "11 connections were rejected: ") &&
                      strstr(many, "2 from 127.0.0.11 (there is no channel 0 from rank 7 to rank 0 "
                                   "here)") != NULL &&
                      strstr(many, "127.0.0.10") == NULL &&
                      g_str_has_suffix(many, ", 2 from other addresses"),
                  "%s", many);
    lh_transport_tcp.close(state);
}
END_TEST

/* A caller that sends everything but the proof is no member, and keeps no member out. */
START_TEST(half_members_keep_nobody_out)
{
    g_setenv("LONGHAUL_SECRET", "0123456789abcdef0123456789abcdef", TRUE);
    get_past_strangers(true, UINT_MAX, " from 127.0.0.1 (it does not prove who it is)");
    g_unsetenv("LONGHAUL_SECRET");
}
END_TEST

/* A listening socket at the address; sets its port. */
static int
listen_at(const char *text, uint16_t *port)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t length = sizeof(at);
    int listener;

    ck_assert_int_eq(inet_pton(AF_INET, text, &at.sin_addr), 1);
    listener = lh_socket_listen((const struct sockaddr *)&at, sizeof(at), false);
    ck_assert_int_ge(listener, 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &length), 0);
    *port = ntohs(at.sin_port);
    return listener;
}

/* A port has one listener. One on all IPv6 addresses also listens on IPv4 if the machine has
 * both. */
START_TEST(ports_have_one_listener)
{
    struct sockaddr_in6 all = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT };
    struct sockaddr_in here = { .sin_family = AF_INET };
    socklen_t length = sizeof(all);
    const int both = lh_socket_listen((const struct sockaddr *)&all, sizeof(all), true);
    const int caller = socket(AF_INET, SOCK_STREAM, 0);
    uint16_t port;
    int four;

    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (both >= 0) {
        ck_assert_int_eq(getsockname(both, (struct sockaddr *)&all, &length), 0);
        here.sin_port = all.sin6_port;
        ck_assert_int_eq(connect(caller, (const struct sockaddr *)&here, sizeof(here)), 0);
        ck_assert_int_eq(lh_socket_listen((const struct sockaddr *)&all, sizeof(all), false), -1);
        ck_assert_int_eq(errno, EADDRINUSE);
        close(both);
    } else {
        ck_assert_int_eq(errno, EAFNOSUPPORT);
    }
    close(caller);
    four = listen_at("127.0.0.1", &port);
    here.sin_port = htons(port);
    errno = 0;
    ck_assert_int_eq(lh_socket_listen((const struct sockaddr *)&here, sizeof(here), false), -1);
    ck_assert_int_eq(errno, EADDRINUSE);
    close(four);
}
END_TEST

/* All addresses of a rank are tried: nothing listens at one, another process at the next. */
START_TEST(ranks_that_cannot_be_reached_are_named)
{
    static const char words[] = "cannot send to rank 1: 127.0.0.3: Connection refused; 127.0.0.2: "
                                "rejected: it has closed the connection";
    g_autoptr(GRand) chance = g_rand_new_with_seed(1);
    Letter *first = new_letter(chance, true, 0, 1, 0, 10);
    Letter *second = new_letter(chance, true, 0, 1, 0, 10);
    const gint64 until = g_get_monotonic_time() + PATIENCE_US;
    const int listener = listen_at("127.0.0.2", &other.port);
    void *state;
    int caller = -1;

    other.count = 2;
    other.addresses[0] = address("127.0.0.3", 8);
    other.addresses[1] = address("127.0.0.2", 8);
    state = open_alone();
    lh_transport_tcp.post(state, &first->message);
    while (caller < 0 && g_get_monotonic_time() < until) {
        lh_transport_tcp.poll(state, WAIT_US);
        caller = accept(listener, NULL, NULL);
    }
    ck_assert_int_ge(caller, 0);
    close(caller);
    while (first->ended == 0 && g_get_monotonic_time() < until)
        lh_transport_tcp.poll(state, WAIT_US);
    ck_assert_str_eq(first->error, words);
    lh_transport_tcp.post(state, &second->message);
    while (second->ended == 0 && g_get_monotonic_time() < until)
        lh_transport_tcp.poll(state, WAIT_US);
    ck_assert_str_eq(second->error, words);
    close(listener);
    free_letter(first);
    free_letter(second);
    lh_transport_tcp.close(state);
}
END_TEST

/* One rank per process. */
START_TEST(processes_with_several_ranks_are_refused)
{
    const LhOpenControl control = { NULL, NULL, { 0, 4 } };
    const LhTransportParams params = { .ranks = 4, .channels = 1, .control = &control };
    GError *error = NULL;

    ck_assert_ptr_null(lh_transport_tcp.open(&params, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "one process for 4 ranks"));
    g_error_free(error);
}
END_TEST

/* A failed run discards its messages; the next one has new connections. */
START_TEST(what_is_left_behind_is_forgotten)
{
    void *state = open_alone();
    g_autoptr(GRand) chance = g_rand_new_with_seed(1);
    Letter *alone = new_letter(chance, true, 0, 0, 2, 100);

    ck_assert(sends_to_itself(state, 2, 100));
    ends = 0;
    lh_transport_tcp.post(state, &alone->message);
    for (int i = 0; i < 10; i++)
        lh_transport_tcp.poll(state, WAIT_US);
    lh_transport_tcp.close(state);
    ck_assert_uint_eq(ends, 0);
    free_letter(alone);
    lh_transport_tcp.close(open_alone());
}
END_TEST

LH_TEST_MAIN("transport_tcp", messages_arrive_in_order, messages_wait_for_both_ends,
             messages_end_with_their_last_byte, wires_end_with_words, wires_expect_nothing_more,
             near_addresses_come_first, whereabouts_are_packed_and_checked, interfaces_are_chosen,
             strangers_are_hung_up_on, members_get_past_strangers, members_get_past_half_words,
             half_members_keep_nobody_out, strangers_make_way, lack_of_files_is_waited_out,
             strangers_are_named_by_address, ports_have_one_listener,
             ranks_that_cannot_be_reached_are_named, processes_with_several_ranks_are_refused,
             what_is_left_behind_is_forgotten)
