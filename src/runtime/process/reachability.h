/* SPDX-License-Identifier: Apache-2.0 */
/* Whether other hosts can be reached, whatever their processes do. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * Calls all [count] addresses at once, each at its port, and waits for @wait_us at most: a host
 * that takes a connection or refuses it answers, reached[i].
 */
void lh_hosts_reachable(const struct sockaddr_storage *addresses, size_t count, int64_t wait_us,
                        bool *reached);
