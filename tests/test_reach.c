/* SPDX-License-Identifier: Apache-2.0 */
/* Host reachability: a host that accepts or refuses a connection is reachable; one whose backlog
 * is full is not. */
#include "run_tests.h"
#include "runtime/process/reachability.h"

#include <arpa/inet.h>
#include <glib.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

#define WAIT_US 300000
#define CALLERS 8 /* more than an empty backlog admits */

/* Binds a socket to a port of this machine; it listens if @backlog is not negative. */
static int
take_port(int backlog, struct sockaddr_storage *address)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    socklen_t length = sizeof(*v4);
    const int one = socket(AF_INET, SOCK_STREAM, 0);

    *v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    ck_assert_int_ge(one, 0);
    ck_assert_int_eq(bind(one, (const struct sockaddr *)v4, length), 0);
    ck_assert_int_eq(getsockname(one, (struct sockaddr *)v4, &length), 0);
    if (backlog >= 0)
        ck_assert_int_eq(listen(one, backlog), 0);
    return one;
}

START_TEST(hosts_answer_or_do_not)
{
    struct sockaddr_storage addresses[4] = { { .ss_family = AF_UNSPEC } };
    const int taking = take_port(CALLERS, &addresses[0]), refusing = take_port(-1, &addresses[1]);
    const int full = take_port(0, &addresses[2]);
    int callers[CALLERS];
    bool reached[4];
    gint64 began_us;

    for (int i = 0; i < CALLERS; i++) {
        callers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(callers[i], (const struct sockaddr *)&addresses[2],
                      sizeof(struct sockaddr_in));
    }
    addresses[3].ss_family = AF_UNSPEC; /* no address */
    began_us = g_get_monotonic_time();
    lh_hosts_reachable(addresses, 4, WAIT_US, reached);
    ck_assert(g_get_monotonic_time() - began_us >= WAIT_US);
    ck_assert(reached[0] && reached[1]);
    ck_assert(!reached[2] && !reached[3]);
    /* Returns at once if all are reachable, and if there are no hosts. */
    lh_hosts_reachable(addresses, 2, G_MAXINT32, reached);
    ck_assert(reached[0] && reached[1]);
    lh_hosts_reachable(NULL, 0, G_MAXINT32, NULL);
    for (int i = 0; i < CALLERS; i++)
        close(callers[i]);
    close(taking);
    close(refusing);
    close(full);
}
END_TEST

LH_TEST_MAIN("reach", hosts_answer_or_do_not)
