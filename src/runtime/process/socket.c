/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <unistd.h>

void
lh_socket_set(int socket)
{
    const int on = 1;

    (void)fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    (void)fcntl(socket, F_SETFD, FD_CLOEXEC);
    (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

int
lh_socket_listen(const struct sockaddr *address, socklen_t length, bool reused)
{
    const int on = 1, off = 0;
    const int listener = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int cause;

    if (listener < 0)
        return -1;
    if (reused)
        (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->sa_family == AF_INET6)
        (void)setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(listener, address, length) == 0 && listen(listener, SOMAXCONN) == 0)
        return listener;
    cause = errno;
    close(listener);
    errno = cause;
    return -1;
}

bool
lh_socket_is_loopback(const struct sockaddr *address)
{
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;

    if (address->sa_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

void
lh_socket_raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

bool
lh_same_secret(const unsigned char *a, const unsigned char *b, gsize bytes)
{
    unsigned char differ = 0;

    for (gsize i = 0; i < bytes; i++)
        differ |= a[i] ^ b[i];
    return differ == 0;
}
