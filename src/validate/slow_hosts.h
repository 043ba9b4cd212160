/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the host of a cluster, or the link between two hosts, that is slower than predicted. It
 * compares measured with predicted times: of the kernels of each host's ranks, and of messages
 * between pairs of hosts while nothing else is in flight. Method: docs/manual/validation.md, "Slow
 * hosts and links".
 */
#pragma once

#include "runtime/backend.h"
#include "runtime/process/processes.h"
#include "sim/network/network.h"

/* Least slowdown of a slow host or link. A host's kernels are slow if their measured / predicted
 * time exceeds that of the median host this many times; messages, if it exceeds 1 this many
 * times. */
#define LH_HOSTS_SLOW 1.5

typedef struct {
    uint32_t node, peer;            /* hosts; equal: kernels of this host's ranks */
    double measured_s, predicted_s; /* kernels: sums; messages: one, in both directions at once */
    bool slow;
} LhHostTimes;

typedef struct {
    uint32_t nodes;
    char **names;  /* [nodes], NULL-terminated */
    GArray *times; /* of LhHostTimes: kernels of every host, then messages of pairs */
    double usual;  /* measured / predicted of the median host's kernels */
} LhSlowHosts;

/* Creates an entry for each host of @network that the processes are on, without times. NULL with
 * @error; caller frees. */
LhSlowHosts *lh_slow_hosts_new(const LhProcesses *processes, const LhNetwork *network,
                               GError **error);
void lh_slow_hosts_free(LhSlowHosts *hosts);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSlowHosts, lh_slow_hosts_free)

/* Adds a kernel of a rank on host @node. */
void lh_slow_hosts_add_kernel(LhSlowHosts *hosts, uint32_t node, double measured_s,
                              double predicted_s);

/* Measures and adds messages of pairs of hosts; all processes must call this. LH_ERROR_RUNTIME. */
bool lh_slow_hosts_measure(LhSlowHosts *hosts, const LhProcesses *processes,
                           const LhBackend *backend, const LhNetwork *network, GError **error);

/* Marks what is slow, once all times have been added. */
void lh_slow_hosts_judge(LhSlowHosts *hosts);

/* Whether the host's adapter is slow, rather than one link: all measured messages of @node are
 * slow, but not those of all other pairs. */
bool lh_slow_hosts_adapter_is_slow(const LhSlowHosts *hosts, uint32_t node);
