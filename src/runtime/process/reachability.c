/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process/reachability.h"

#include <errno.h>
#include <glib.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#define US_PER_MS 1000

static socklen_t
length_of(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}

/* Whether the errno of connect() shows that the host is up. */
static bool
answers(int cause)
{
    return cause == 0 || cause == ECONNREFUSED || cause == ECONNRESET;
}

/* Starts to connect. Returns the socket while the outcome is open, else -1. */
static int
call_host(const struct sockaddr_storage *address, bool *reached)
{
    const int one = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (one < 0)
        return -1;
    if (connect(one, (const struct sockaddr *)address, length_of(address)) != 0 &&
        errno == EINPROGRESS)
        return one;
    *reached = answers(errno);
    close(one);
    return -1;
}

static void
hang_up(struct pollfd *call)
{
    close(call->fd);
    call->fd = -1;
}

void
lh_hosts_reachable(const struct sockaddr_storage *addresses, size_t count, int64_t wait_us,
                   bool *reached)
{
    const int64_t end_us = g_get_monotonic_time() + wait_us;
    g_autofree struct pollfd *calls = g_new0(struct pollfd, MAX(count, 1));
    size_t open = 0;

    for (size_t i = 0; i < count; i++) {
        reached[i] = false;
        errno = 0;
        calls[i] =
            (struct pollfd){ .fd = call_host(&addresses[i], &reached[i]), .events = POLLOUT };
        open += calls[i].fd >= 0;
    }
    while (open > 0 && g_get_monotonic_time() < end_us) {
        if (poll(calls, count, (int)((end_us - g_get_monotonic_time()) / US_PER_MS) + 1) <= 0)
            continue;
        for (size_t i = 0; i < count; i++) {
            int cause = ETIMEDOUT;
            socklen_t length = sizeof(cause);

            if (calls[i].fd < 0 || calls[i].revents == 0)
                continue;
            (void)getsockopt(calls[i].fd, SOL_SOCKET, SO_ERROR, &cause, &length);
            reached[i] = answers(cause);
            hang_up(&calls[i]);
            open--;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (calls[i].fd >= 0)
            hang_up(&calls[i]);
    }
}
