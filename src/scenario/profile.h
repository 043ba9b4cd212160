/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured constants laid over a device and a topology: longhaul.profile. A profile contains only
 * what was measured. Its curves replace whole curves of the data files; its links scale the
 * topology's by measured over predicted rate (profile_links.h).
 */
#pragma once

#include "base/json/json.h"
#include "sim/cost/device.h"
#include "sim/network/topology.h"

/* Traffic pattern of a message measurement. */
typedef enum {
    LH_FLOWS_NODE,  /* every rank to the next one of its node, all nodes at once */
    LH_FLOWS_ONE,   /* one rank of a node exchanges with one rank of another */
    LH_FLOWS_ALL,   /* all ranks of two nodes exchange */
    LH_FLOWS_CYCLE, /* all ranks of every node to those of the next node */
    LH_FLOWS_FAN,   /* every rank to all others, as in an all-gather (calibrate_collectives.c) */
    LH_FLOWS_KINDS
} LhFlowsKind;

/* "node", "one", "all", "cycle", "fan"; NULL-terminated. */
extern const char *const lh_flows_names[];

/* One measurement of messages between ranks of a cluster. For the record: the topology is fitted to
 * these. */
typedef struct {
    int flows; /* LhFlowsKind */
    uint64_t node, peer, bytes;
    double measured_s, fitted_s;
    bool holdout;
} LhProfileMessage;

/* One measurement of a collective made of messages. For the record: no constant is fitted to it. */
typedef struct {
    int op; /* LhCollectiveKind */
    uint64_t ranks, bytes;
    double measured_s, predicted_s;
} LhProfileCheck;

/* Host times of an engine's calls. For the record: kernel_launch and stream_sync are derived from
 * them. */
typedef struct {
    LhTime op_ps, compute_ps, wait_ps, group_ps, sync_ps;
} LhProfileHost;

typedef struct {
    int schema; /* version of longhaul.profile, from 0 */
    char *name;
    char *description;
    char *source;
    LhDevice device; /* measured constants and kernels; others as lh_profile_nothing() */
    LhLinkClass nvlink, pcie, nic;
    GArray *messages;          /* of LhProfileMessage; NULL: none */
    GArray *collective_checks; /* of LhProfileCheck; NULL: none */
    LhProfileHost host;
    GArray *collective_times; /* of LhCollectiveTimes, in place of the topology's; NULL: none */
    char *sha256;
    LhJson *json; /* the file, for messages and for which members it has */
} LhProfile;

/* The field table; fields of devices are borrowed from the device table. */
const LhField *lh_profile_fields(void);

/* An empty profile: choices and times are -1, all else is 0. */
const LhProfile *lh_profile_nothing(void);

/* Appends the document; @fine: with all significant digits of rates and times. @profile must start
 * from lh_profile_nothing(), with the schema LH_PROFILE_SCHEMA. */
void lh_profile_write(const LhProfile *profile, bool fine, GString *out);
#define LH_PROFILE_SCHEMA 1

/* Reads a file. Caller frees. */
LhProfile *lh_profile_load(const char *path, GError **error);
LhProfile *lh_profile_parse(const char *file, const char *text, gsize length, GError **error);
void lh_profile_free(LhProfile *profile);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhProfile, lh_profile_free)

/*
 * Lays the profile over @device and @topology. LH_ERROR_INPUT, with file and line, for an unknown
 * kernel, a rate above the device's peak, or links that the topology does not have.
 */
bool lh_profile_apply(const LhProfile *profile, LhDevice *device, LhTopology *topology,
                      GError **error);
