/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which host of a cluster, or which link between two, is slower than predicted: what kernels of
 * each host's ranks took beside what was predicted, and messages between every two hosts, of which
 * nothing else is under way. Method: docs/manual/validation.md, "Slow hosts and links".
 */
#pragma once

#include "runtime/backend.h"
#include "runtime/process/processes.h"
#include "sim/network/network.h"

/* A host whose kernels take this many times as long as those of the median host, by what was
 * predicted of both, is slow; likewise messages, by what was predicted of them. */
#define LH_HOSTS_SLOW 1.5

typedef struct {
    uint32_t node, peer;            /* hosts; the same: kernels of this one's ranks */
    double measured_s, predicted_s; /* kernels: sums; messages: of one, both ways at once */
    bool slow;
} LhHostTimes;

typedef struct {
    uint32_t nodes;
    char **names;  /* [nodes], NULL-terminated */
    GArray *times; /* of LhHostTimes: kernels of every node, then messages of pairs */
    double usual;  /* measured / predicted of the median host's kernels */
} LhSlowHosts;

/* One for each host of @network that the processes are on: no times of messages yet, and none of
 * kernels. NULL with @error; caller frees. */
LhSlowHosts *lh_slow_hosts_new(const LhProcesses *processes, const LhNetwork *network,
                               GError **error);
void lh_slow_hosts_free(LhSlowHosts *hosts);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSlowHosts, lh_slow_hosts_free)

/* Counts a kernel of a rank on host @node. */
void lh_slow_hosts_add_kernel(LhSlowHosts *hosts, uint32_t node, double measured_s,
                              double predicted_s);

/* Adds messages of pairs; all processes call it. LH_ERROR_RUNTIME. */
bool lh_slow_hosts_measure(LhSlowHosts *hosts, const LhProcesses *processes,
                           const LhBackend *backend, const LhNetwork *network, GError **error);

/* Says what is slow, once all has been added. */
void lh_slow_hosts_judge(LhSlowHosts *hosts);

/* Whether all that was measured of messages of @node is slow, but not all there is: then it is the
 * host's adapter, and no single link. */
bool lh_slow_hosts_adapter_is_slow(const LhSlowHosts *hosts, uint32_t node);
