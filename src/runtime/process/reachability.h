/* SPDX-License-Identifier: Apache-2.0 */
/* Whether other hosts can be reached, whatever state their processes are in. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * Connects to all [count] addresses at once and waits at most @wait_us. Sets reached[i] if the host
 * accepts or refuses the connection.
 */
void lh_hosts_reachable(const struct sockaddr_storage *addresses, size_t count, int64_t wait_us,
                        bool *reached);
