/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What two readers conclude of PCIe of a node: which GPUs are behind one switch or on one socket,
 * and what the links of these carry by the constants of NCCL's public source.
 */
#pragma once

#include "import/cluster/readers_private.h"

#define LH_TOOL_SWITCHES_MAX (LH_PCIE_LEVELS_MAX - 1) /* inside each other, above a GPU */

/* What an element says of a host's CPUs. */
typedef struct {
    const char *arch, *vendor; /* NULL: not said */
    bool modelled;             /* whether @family and @model are said */
    uint64_t family, model;
} LhToolCpu;

/* What a link between sockets carries, bytes/s; 0, and in *@missing what does not tell it, if it is
 * not known. @name: the CPUs that it is of, static. */
double lh_tool_socket_rate(const LhToolCpu *cpu, const char **name, const char **missing);

/* Of a PCIe link, what NCCL counts on for messages between GPUs that leave their switch. */
double lh_tool_share_by_memory(const LhToolCpu *cpu);

/* Whether NCCL lets two GPUs that are alone reach each other directly, however far they are. */
bool lh_tool_is_direct_for_two(const LhToolCpu *cpu);

/* A tree that a reader makes. */
void lh_tool_tree_init(LhToolTree *tree, guint gpus);
void lh_tool_tree_clear(LhToolTree *tree);

/* The groups of @gpus GPUs of which those of equal @group are one, numbered as GPUs come. Caller
 * unrefs. */
GArray *lh_tool_groups(const uint32_t *group, guint gpus);
guint lh_tool_groups_count(const GArray *of_gpu);

/*
 * Adds a level outside of those that are there, in place of one of the same groups: a message
 * crosses both then, and the slower one counts. Takes @of_gpu over, and drops it if nothing is
 * outside of it.
 */
void lh_tool_tree_add(LhToolTree *tree, const char *name, GArray *of_gpu, double up,
                      const char *source);

/* The tree of the file that is read, as found in line @line; takes what @tree has. A file that says
 * more holds. False with the error set if another one has GPUs in other groups. */
bool lh_tool_add_tree(LhToolReader *r, LhToolTree *tree, guint line);

/* How far two GPUs are from each other, in a table of all. */
typedef enum {
    LH_TOOL_ON_SWITCH, /* of PCIe, or on several */
    LH_TOOL_ON_SOCKET,
    LH_TOOL_BEYOND, /* on several sockets */
    LH_TOOL_UNSAID, /* NVLink joins them, so that the table says nothing of PCIe */
} LhToolReach;

/* Adds the tree of a table in line @line: @reach[a * gpus + b], LhToolReach. @node: of each GPU a
 * number, equal for GPUs on CPUs that are equal, UINT32_MAX if that is not said. False with the
 * error set if the table is of no tree. */
bool lh_tool_add_reaches(LhToolReader *r, guint gpus, const uint32_t *reach, const uint32_t *node,
                         guint line);
