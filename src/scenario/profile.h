/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured constants laid over a device and a topology: longhaul.profile. A profile states only
 * what was measured; curves that it names replace the data files' ones whole, and links change by
 * what it found beside what the topology says (profile_links.h).
 */
#pragma once

#include "base/json/json.h"
#include "sim/cost/device.h"
#include "sim/network/topology.h"

/* What some ranks were asked to send each other, and what one round took. */
typedef enum {
    LH_FLOWS_NODE,  /* every rank to the next one of its node, in all nodes */
    LH_FLOWS_ONE,   /* one rank of a node and one of another exchange */
    LH_FLOWS_ALL,   /* likewise all ranks of the two nodes */
    LH_FLOWS_CYCLE, /* all ranks of every node to those of the next one */
    LH_FLOWS_FAN,   /* every rank to all others, as an all-gather (calibrate_collectives.c) */
    LH_FLOWS_KINDS
} LhFlowsKind;

/* "node", "one", "all", "cycle", "fan"; NULL-terminated. */
extern const char *const lh_flows_names[];

/* A time of messages between ranks of a cluster: for the record, the topology is made of them. */
typedef struct {
    int flows; /* LhFlowsKind */
    uint64_t node, peer, bytes;
    double measured_s, fitted_s;
    bool holdout;
} LhProfileMessage;

/* A collective made of messages, for the record: no constant is made of it. */
typedef struct {
    int op; /* LhCollectiveKind */
    uint64_t ranks, bytes;
    double measured_s, predicted_s;
} LhProfileCheck;

/* What an engine's host takes for its calls, for the record: kernel_launch and stream_sync are made
 * of them. */
typedef struct {
    LhTime op_ps, compute_ps, wait_ps, group_ps, sync_ps;
} LhProfileHost;

typedef struct {
    int schema; /* version of longhaul.profile, from 0 */
    char *name;
    char *description;
    char *source;
    LhDevice device; /* constants and kernels that were measured; others as lh_profile_nothing() */
    LhLinkClass nvlink, pcie, nic;
    GArray *messages;          /* of LhProfileMessage; NULL: none */
    GArray *collective_checks; /* of LhProfileCheck; NULL: none */
    LhProfileHost host;
    GArray *collective_times; /* of LhCollectiveTimes, in place of the topology's; NULL: none */
    char *sha256;
    LhJson *json; /* what is in the file and what is not; for messages */
} LhProfile;

/* The field table; what devices have, too, it borrows from their table. */
const LhField *lh_profile_fields(void);

/* What a profile is of which nothing was measured: choices and times are -1, all else is 0. */
const LhProfile *lh_profile_nothing(void);

/* Appends the document; @fine: with all digits that matter of rates and times. @profile begins with
 * lh_profile_nothing(), and its schema is LH_PROFILE_SCHEMA. */
void lh_profile_write(const LhProfile *profile, bool fine, GString *out);
#define LH_PROFILE_SCHEMA 1

/* Reads a file. Caller frees. */
LhProfile *lh_profile_load(const char *path, GError **error);
LhProfile *lh_profile_parse(const char *file, const char *text, gsize length, GError **error);
void lh_profile_free(LhProfile *profile);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhProfile, lh_profile_free)

/*
 * Lays the profile over @device and @topology. LH_ERROR_INPUT, with file and line, if it names a
 * kernel that does not exist, a rate above the device's peak, or links that the topology does not
 * have.
 */
bool lh_profile_apply(const LhProfile *profile, LhDevice *device, LhTopology *topology,
                      GError **error);
