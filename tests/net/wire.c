/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network switch with adapters of given rates and long wires. A frame passes the sender's
 * adapter, travels DELAY_US microseconds, and passes the adapter of its destination, which is
 * cut-through: it begins with the first byte. At an adapter the frames of different connections
 * alternate byte by byte, and none is dropped for lack of buffers: the switch behaves like a fabric
 * with flow control that is fair between connections.
 *
 *     wire DELAY_US PORT=BITS_PER_S PORT=BITS_PER_S...
 *
 * Commands on standard input, one per line, take effect at once:
 *
 *     rate PORT BITS_PER_S      sets the adapter's rate, both directions
 *     lose PORT PERMILLE SEED   drops PERMILLE of 1000 frames at this port, both directions
 *
 * The dropped frames are drawn from the seed. A cable that drops all of them is cut, without any
 * notification. Offloads stay on: frames keep their segmentation and checksum headers
 * (PACKET_VNET_HDR). Prints "ready" once it switches, and runs until it is killed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORTS_MAX 64
#define FLOWS_MAX 256 /* connections with frames at one adapter */
#define FRAME_BYTES_MAX (sizeof(struct virtio_net_hdr) + 66000)
#define SOCKET_BYTES (16 << 20)
#define NS_PER_S INT64_C(1000000000)
#define NS_PER_US INT64_C(1000)
#define BATCH 64     /* frames of a port before the next port is served */
#define ADDRESSES 26 /* offset of an IPv4 frame's addresses, followed by its ports */
#define ADDRESSES_BYTES 12

typedef struct Frame Frame;
struct Frame {
    Frame *next;
    int64_t first_ns, last_ns; /* arrival times of its first and last byte at the far end */
    uint64_t key;              /* of its connection */
    size_t wire_bytes;         /* including the overhead of each segment */
    bool lost;
    size_t bytes;
    unsigned char data[]; /* struct virtio_net_hdr, then the frame */
};

typedef struct {
    Frame *first, *last; /* `last` is meaningless if the queue is empty */
} Queue;

/* A connection with frames at an adapter. */
typedef struct {
    uint64_t key;
    Frame *passing; /* partly transmitted */
    double end;     /* value of the adapter's `turn` at which it is transmitted */
    Queue frames;   /* frames after it */
} Flow;

/* One direction of an adapter. `turn` is the number of bytes that a connection with frames all the
 * time would have sent; every connection with frames advances with it (generalised processor
 * sharing: Parekh and Gallager 1993). */
typedef struct {
    double ns_per_byte;
    double turn;
    int64_t at_ns; /* time of `turn` */
    Flow flows[FLOWS_MAX];
    unsigned flows_count;
    Queue *begun; /* receives frames whose transmission begins; NULL: unused */
} Adapter;

typedef struct {
    unsigned char address[ETH_ALEN]; /* of the host at this port, known after its first frame */
    bool known;
    unsigned lost_permille;
    uint64_t random; /* state of SplitMix64 */
    Adapter in, out; /* from the host, to the host */
    Queue wire;      /* frames in flight from here, by arrival of the first byte */
    Queue last;      /* frames transmitted whose last byte has not arrived */
} Port;

static struct pollfd polled[PORTS_MAX + 1]; /* the ports' sockets, then standard input */
static Frame *spare;                        /* free frames, each of full size */
static char *names[PORTS_MAX];              /* of the ports */
static Port ports[PORTS_MAX];
static unsigned ports_count;
static int64_t delay_ns;

static void
fail(const char *what)
{
    fprintf(stderr, "wire: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static int64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void
append(Queue *queue, Frame *frame)
{
    frame->next = NULL;
    if (queue->first == NULL)
        queue->first = frame;
    else
        queue->last->next = frame;
    queue->last = frame;
}

static Frame *
take(Queue *queue)
{
    Frame *frame = queue->first;

    queue->first = frame->next;
    return frame;
}

/* Gets a frame of full size: allocating each from the system would cost more than copying it. */
static Frame *
new_frame(void)
{
    Frame *frame = spare;

    if (frame == NULL)
        frame = malloc(sizeof(*frame) + FRAME_BYTES_MAX);
    else
        spare = frame->next;
    if (frame == NULL)
        fail("memory");
    return frame;
}

static void
free_frame(Frame *frame)
{
    frame->next = spare;
    spare = frame;
}

static int
open_port(const char *name)
{
    const int socket_fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    const int yes = 1, bytes = SOCKET_BYTES;
    struct sockaddr_ll address = { .sll_family = AF_PACKET,
                                   .sll_protocol = htons(ETH_P_ALL),
                                   .sll_ifindex = (int)if_nametoindex(name) };

    if (socket_fd < 0 || address.sll_ifindex == 0)
        fail(name);
    if (setsockopt(socket_fd, SOL_PACKET, PACKET_VNET_HDR, &yes, sizeof(yes)) != 0 ||
        setsockopt(socket_fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof(yes)) != 0 ||
        bind(socket_fd, (struct sockaddr *)(void *)&address, sizeof(address)) != 0)
        fail(name);
    setsockopt(socket_fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
    setsockopt(socket_fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
    return socket_fd;
}

/* ---- commands ---- */

static void
set_rate(Port *port, uint64_t bits_per_s)
{
    port->in.ns_per_byte = port->out.ns_per_byte = 8.0 * (double)NS_PER_S / (double)bits_per_s;
}

static Port *
find_port(const char *name)
{
    for (unsigned i = 0; i < ports_count; i++)
        if (strcmp(names[i], name) == 0)
            return &ports[i];
    return NULL;
}

static void
obey(const char *line)
{
    char name[IF_NAMESIZE];
    unsigned permille;
    uint64_t seed, rate;
    Port *port;

    if (sscanf(line, "lose %15s %u %" SCNu64, name, &permille, &seed) == 3 &&
        (port = find_port(name)) != NULL) {
        port->lost_permille = permille;
        port->random = seed;
    } else if (sscanf(line, "rate %15s %" SCNu64, name, &rate) == 2 && rate > 0 &&
               (port = find_port(name)) != NULL) {
        set_rate(port, rate);
    } else {
        fprintf(stderr, "wire: no command, or no such port: %s\n", line);
        exit(EXIT_FAILURE);
    }
}

/* Commands must be written as whole lines. */
static void
read_commands(void)
{
    char text[1024], *rest = text, *line;
    const ssize_t bytes = read(STDIN_FILENO, text, sizeof(text) - 1);

    if (bytes <= 0) {
        polled[ports_count].fd = -1;
        return;
    }
    text[bytes] = '\0';
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (line[0] != '\0')
            obey(line);
    }
}

static bool
loses(Port *port)
{
    uint64_t bits;

    if (port->lost_permille == 0)
        return false;
    bits = port->random += UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (bits ^ (bits >> 31)) % 1000 < port->lost_permille;
}

/* ---- adapters ---- */

/* The connection whose frame completes first; NULL if none has frames. */
static Flow *
first_of(Adapter *adapter)
{
    Flow *first = NULL;

    for (unsigned i = 0; i < adapter->flows_count; i++) {
        if (first == NULL || adapter->flows[i].end < first->end)
            first = &adapter->flows[i];
    }
    return first;
}

static int64_t
end_of(const Adapter *adapter, const Flow *flow)
{
    const double left = (flow->end - adapter->turn) * adapter->flows_count;

    return adapter->at_ns + (int64_t)(left * adapter->ns_per_byte) + 1;
}

static void
begin(Adapter *adapter, Flow *flow, Frame *frame)
{
    flow->passing = frame;
    flow->end += (double)frame->wire_bytes;
    if (adapter->begun == NULL)
        return;
    frame->first_ns = adapter->at_ns + delay_ns;
    append(adapter->begun, frame);
}

/* The next frame that completes by the given time, leaving adapter->at_ns at its completion; its
 * connection's next frame has begun. */
static Frame *
passed(Adapter *adapter, int64_t until_ns)
{
    Flow *flow = first_of(adapter);
    Frame *frame;

    if (flow == NULL || end_of(adapter, flow) > until_ns) {
        if (flow != NULL && until_ns > adapter->at_ns)
            adapter->turn +=
                (double)(until_ns - adapter->at_ns) / (adapter->ns_per_byte * adapter->flows_count);
        adapter->at_ns = until_ns > adapter->at_ns ? until_ns : adapter->at_ns;
        return NULL;
    }
    adapter->at_ns = end_of(adapter, flow);
    adapter->turn = flow->end;
    frame = flow->passing;
    if (flow->frames.first == NULL) {
        *flow = adapter->flows[--adapter->flows_count];
        return frame;
    }
    begin(adapter, flow, take(&flow->frames));
    return frame;
}

/* Queues a frame behind those of its connection; the adapter must be up to date. False: there are
 * too many connections. */
static bool
queue_at(Adapter *adapter, Frame *frame)
{
    Flow *flow = adapter->flows;

    while (flow < adapter->flows + adapter->flows_count && flow->key != frame->key)
        flow++;
    if (flow < adapter->flows + adapter->flows_count) {
        append(&flow->frames, frame);
        return true;
    }
    if (adapter->flows_count == FLOWS_MAX)
        return false;
    adapter->flows_count++;
    *flow = (Flow){ .key = frame->key, .end = adapter->turn };
    begin(adapter, flow, frame);
    return true;
}

/* ---- in ---- */

/* FNV-1a over addresses and ports; for frames other than TCP over IPv4, over the same bytes. */
static uint64_t
key_of(const unsigned char *frame, size_t bytes)
{
    uint64_t key = UINT64_C(0xcbf29ce484222325);

    for (size_t i = ADDRESSES; i < ADDRESSES + ADDRESSES_BYTES && i < bytes; i++)
        key = (key ^ frame[i]) * UINT64_C(0x100000001b3);
    return key;
}

/* Includes the headers of all segments that an adapter would make of it. */
static size_t
wire_bytes(const struct virtio_net_hdr *header, size_t frame_bytes)
{
    size_t segments = 1;

    if (header->gso_type != VIRTIO_NET_HDR_GSO_NONE && header->gso_size > 0 &&
        frame_bytes > header->hdr_len)
        segments = (frame_bytes - header->hdr_len + header->gso_size - 1) / header->gso_size;
    return frame_bytes + (segments - 1) * header->hdr_len;
}

static bool
receive(unsigned port)
{
    Frame *frame = new_frame();
    const ssize_t got = recv(polled[port].fd, frame->data, FRAME_BYTES_MAX, MSG_DONTWAIT);
    const struct ether_header *header = (const void *)(frame->data + sizeof(struct virtio_net_hdr));
    const bool whole = got >= (ssize_t)(sizeof(struct virtio_net_hdr) + sizeof(*header));
    size_t bytes;

    if (whole) {
        memcpy(ports[port].address, header->ether_shost, ETH_ALEN);
        ports[port].known = true;
    }
    if (!whole || loses(&ports[port])) {
        free_frame(frame);
        return whole;
    }
    bytes = (size_t)got - sizeof(struct virtio_net_hdr);
    frame->last_ns = INT64_MAX;
    frame->lost = false;
    frame->bytes = (size_t)got;
    frame->key = key_of((const void *)header, bytes);
    frame->wire_bytes = wire_bytes((const void *)frame->data, bytes);
    if (!queue_at(&ports[port].in, frame))
        free_frame(frame); /* it is retransmitted */
    return true;
}

/* ---- out ---- */

static void
deliver(unsigned port, Frame *frame)
{
    /* A port that is down or full drops the frame, as a switch does. */
    if (!frame->lost && !loses(&ports[port]))
        (void)!send(polled[port].fd, frame->data, frame->bytes, MSG_DONTWAIT);
    free_frame(frame);
}

/* Delivers frames transmitted by then whose last byte has arrived. */
static void
pass_out(unsigned port, int64_t until_ns)
{
    Port *p = &ports[port];
    Queue passed_out = p->last;
    Frame *frame;

    while ((frame = passed(&p->out, until_ns)) != NULL)
        append(&passed_out, frame);
    p->last.first = NULL;
    while (passed_out.first != NULL) {
        frame = take(&passed_out);
        if (frame->last_ns <= until_ns)
            deliver(port, frame);
        else
            append(&p->last, frame);
    }
}

static Frame *
copy_of(const Frame *frame)
{
    Frame *copy = new_frame();

    memcpy(copy, frame, sizeof(*copy) + frame->bytes);
    copy->last_ns = frame->first_ns; /* such frames are short */
    return copy;
}

static void
arrive_at(unsigned port, Frame *frame)
{
    pass_out(port, frame->first_ns);
    if (queue_at(&ports[port].out, frame))
        return;
    frame->lost = true;
    append(&ports[port].last, frame);
}

/* Forwards a frame to the adapter of its destination, or to all others if that is unknown. */
static void
arrive(unsigned from, Frame *frame)
{
    const struct ether_header *header = (const void *)(frame->data + sizeof(struct virtio_net_hdr));
    unsigned last = from;

    for (unsigned i = 0; i < ports_count; i++)
        if (ports[i].known && memcmp(ports[i].address, header->ether_dhost, ETH_ALEN) == 0) {
            arrive_at(i, frame);
            return;
        }
    for (unsigned i = 0; i < ports_count; i++) {
        if (i == from)
            continue;
        if (last != from)
            arrive_at(last, copy_of(frame));
        last = i;
    }
    arrive_at(last, frame);
}

/* ---- time ---- */

static void
pass_in(unsigned port, int64_t until_ns)
{
    Frame *frame;

    while ((frame = passed(&ports[port].in, until_ns)) != NULL)
        frame->last_ns = ports[port].in.at_ns + delay_ns;
}

/* The port with the earliest arrival of a first byte; NULL if none is in flight. */
static Port *
next_arrival(void)
{
    Port *next = NULL;

    for (unsigned i = 0; i < ports_count; i++) {
        Port *p = &ports[i];

        if (p->wire.first != NULL &&
            (next == NULL || p->wire.first->first_ns < next->wire.first->first_ns))
            next = p;
    }
    return next;
}

static void
advance_all(void)
{
    const int64_t until_ns = now_ns();
    Port *from;

    for (unsigned i = 0; i < ports_count; i++)
        pass_in(i, until_ns);
    while ((from = next_arrival()) != NULL && from->wire.first->first_ns <= until_ns)
        arrive((unsigned)(from - ports), take(&from->wire));
    for (unsigned i = 0; i < ports_count; i++)
        pass_out(i, until_ns);
}

static int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A time before which nothing can be delivered to a host; INT64_MAX: nothing is in flight. Events
 * at adapters before that are computed afterwards with their true times: waking up for them would
 * take CPU time from the hosts on the same machine. */
static int64_t
next_ns(void)
{
    int64_t next = INT64_MAX;

    for (unsigned i = 0; i < ports_count; i++) {
        Port *p = &ports[i];

        if (first_of(&p->in) != NULL)
            next = least(next, end_of(&p->in, first_of(&p->in)) + delay_ns);
        if (first_of(&p->out) != NULL)
            next = least(next, end_of(&p->out, first_of(&p->out)));
        for (const Frame *frame = p->wire.first; frame != NULL; frame = frame->next)
            next = least(next, frame->last_ns);
        for (const Frame *frame = p->last.first; frame != NULL; frame = frame->next)
            next = least(next, frame->last_ns);
    }
    return next;
}

/* Waits for a frame from a host, a command, or the next delivery. */
static void
wait_for_more(void)
{
    const int64_t next = next_ns(), left_ns = next == INT64_MAX ? 0 : next - now_ns();
    const struct timespec limit = { left_ns > 0 ? left_ns / NS_PER_S : 0,
                                    left_ns > 0 ? left_ns % NS_PER_S : 0 };

    if (ppoll(polled, ports_count + 1, next == INT64_MAX ? NULL : &limit, NULL) >= 0)
        return;
    if (errno != EINTR)
        fail("waiting");
    for (unsigned i = 0; i <= ports_count; i++)
        polled[i].revents = 0;
}

/* PORT=BITS_PER_S */
static bool
add_port(char *word)
{
    char *equals = strchr(word, '=');
    const uint64_t rate = equals == NULL ? 0 : strtoull(equals + 1, NULL, 10);

    if (rate == 0 || ports_count == PORTS_MAX)
        return false;
    *equals = '\0';
    names[ports_count] = word;
    polled[ports_count] = (struct pollfd){ .fd = open_port(word), .events = POLLIN };
    ports[ports_count].in.begun = &ports[ports_count].wire;
    set_rate(&ports[ports_count], rate);
    ports_count++;
    return true;
}

int
main(int argc, char **argv)
{
    const struct sched_param priority = { .sched_priority = 2 };
    bool good = argc >= 4;

    for (int i = 2; i < argc && good; i++)
        good = add_port(argv[i]);
    delay_ns = good ? strtoll(argv[1], NULL, 10) * NS_PER_US : -1;
    if (delay_ns < 0) {
        fprintf(stderr, "usage: wire DELAY_US PORT=BITS_PER_S PORT=BITS_PER_S... (at most %d)\n",
                PORTS_MAX);
        return 2;
    }
    polled[ports_count] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
    /* For precise timing where permitted; otherwise timing is less precise. */
    (void)!sched_setscheduler(0, SCHED_FIFO, &priority);
    prctl(PR_SET_TIMERSLACK, 1);
    puts("ready");
    fflush(stdout);
    for (;;) {
        wait_for_more();
        advance_all();
        for (unsigned i = 0; i < ports_count; i++)
            for (unsigned n = 0; n < BATCH && polled[i].revents != 0 && receive(i); n++)
                advance_all();
        if (polled[ports_count].revents != 0) {
            advance_all();
            read_commands();
        }
    }
}
