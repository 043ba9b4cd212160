/*
 * A switch whose wires are long: every frame that a port receives leaves at the port of its
 * destination so many microseconds later. For kernels that lack netem; rates are tc's.
 *
 *     wire DELAY_US PORT PORT...
 *
 * Its standard input has commands, a line each, which hold from the next frame on:
 *
 *     lose PORT PERMILLE SEED   so many of a thousand frames that pass this port, in both
 * directions
 *
 * Which ones is drawn from the seed. A cable that loses all of them is cut, and nobody is told.
 * Offloads stay on: frames pass with their headers of segmentation and checksums (PACKET_VNET_HDR).
 * It prints "ready" once it switches, and runs until it is killed.
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
#define FRAME_BYTES_MAX (sizeof(struct virtio_net_hdr) + 66000)
#define SOCKET_BYTES (16 << 20)
#define NS_PER_S INT64_C(1000000000)
#define NS_PER_US INT64_C(1000)
#define BATCH 64 /* frames of a port, before others have their turn */

typedef struct Frame Frame;
struct Frame {
    Frame *next;
    int64_t due_ns;
    unsigned port; /* that it came from */
    size_t bytes;
    unsigned char data[]; /* struct virtio_net_hdr, then the frame */
};

typedef struct {
    unsigned char address[ETH_ALEN]; /* of the host behind it, once it has sent something */
    bool known;
    unsigned lost_permille;
    uint64_t random; /* state of SplitMix64 */
} Port;

static struct pollfd polled[PORTS_MAX + 1]; /* the ports' sockets, then standard input */
static char **names;                        /* of the ports */
static Port ports[PORTS_MAX];
static unsigned ports_count;
static Frame *first, **last = &first; /* all under way, in order of time */

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
obey(const char *line)
{
    char name[IF_NAMESIZE];
    unsigned permille;
    uint64_t seed;

    if (sscanf(line, "lose %15s %u %" SCNu64, name, &permille, &seed) == 3) {
        for (unsigned i = 0; i < ports_count; i++) {
            if (strcmp(names[i], name) != 0)
                continue;
            ports[i].lost_permille = permille;
            ports[i].random = seed;
            return;
        }
    }
    fprintf(stderr, "wire: no command, or no such port: %s\n", line);
    exit(EXIT_FAILURE);
}

/* Whoever gives commands writes whole lines at once. */
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

/* ---- in ---- */

static bool
receive(unsigned port, int64_t delay_ns)
{
    static unsigned char data[FRAME_BYTES_MAX];
    const ssize_t bytes = recv(polled[port].fd, data, sizeof(data), MSG_DONTWAIT);
    const struct ether_header *header = (const void *)(data + sizeof(struct virtio_net_hdr));
    Frame *frame;

    if (bytes < (ssize_t)(sizeof(struct virtio_net_hdr) + sizeof(*header)))
        return false;
    memcpy(ports[port].address, header->ether_shost, ETH_ALEN);
    ports[port].known = true;
    frame = malloc(sizeof(*frame) + (size_t)bytes);
    if (frame == NULL)
        fail("memory");
    *frame = (Frame){ .due_ns = now_ns() + delay_ns, .port = port, .bytes = (size_t)bytes };
    memcpy(frame->data, data, (size_t)bytes);
    *last = frame;
    last = &frame->next;
    return true;
}

/* ---- out ---- */

static void
deliver(const Frame *frame)
{
    const struct ether_header *header = (const void *)(frame->data + sizeof(struct virtio_net_hdr));
    bool found = false;

    if (loses(&ports[frame->port]))
        return;
    for (unsigned i = 0; i < ports_count && !found; i++)
        found = ports[i].known && memcmp(ports[i].address, header->ether_dhost, ETH_ALEN) == 0;
    for (unsigned i = 0; i < ports_count; i++) {
        if (i == frame->port ||
            (found && memcmp(ports[i].address, header->ether_dhost, ETH_ALEN) != 0) ||
            loses(&ports[i]))
            continue;
        /* A port that is down or full loses the frame, as a switch does. */
        (void)!send(polled[i].fd, frame->data, frame->bytes, MSG_DONTWAIT);
    }
}

static void
deliver_due(void)
{
    while (first != NULL && first->due_ns <= now_ns()) {
        Frame *frame = first;

        first = frame->next;
        if (first == NULL)
            last = &first;
        deliver(frame);
        free(frame);
    }
}

static void
wait_for_more(void)
{
    const int64_t left_ns = first == NULL ? 0 : first->due_ns - now_ns();
    const struct timespec limit = { left_ns / NS_PER_S, left_ns % NS_PER_S };

    if (first != NULL && left_ns <= 0)
        return;
    if (ppoll(polled, ports_count + 1, first == NULL ? NULL : &limit, NULL) < 0 && errno != EINTR)
        fail("waiting");
}

int
main(int argc, char **argv)
{
    const int64_t delay_ns = argc < 2 ? 0 : strtoll(argv[1], NULL, 10) * NS_PER_US;
    const struct sched_param priority = { .sched_priority = 1 };

    if (argc < 4 || argc - 2 > PORTS_MAX || delay_ns < 0) {
        fprintf(stderr, "usage: wire DELAY_US PORT PORT... (at most %d)\n", PORTS_MAX);
        return 2;
    }
    names = argv + 2;
    for (; (int)ports_count < argc - 2; ports_count++)
        polled[ports_count] =
            (struct pollfd){ .fd = open_port(names[ports_count]), .events = POLLIN };
    polled[ports_count] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
    /* As near to the time as the machine allows; without the right to it, later. */
    (void)!sched_setscheduler(0, SCHED_FIFO, &priority);
    prctl(PR_SET_TIMERSLACK, 1);
    puts("ready");
    fflush(stdout);
    for (;;) {
        for (unsigned i = 0; i < ports_count; i++) {
            for (unsigned n = 0; n < BATCH && receive(i, delay_ns); n++)
                deliver_due();
        }
        deliver_due();
        wait_for_more();
        if (polled[ports_count].revents != 0)
            read_commands();
    }
}
