/*
 * What two readers conclude of PCIe of a node: which GPUs are behind one switch or on one socket,
 * and what the links of these carry by the constants of NCCL's public source.
 */
#pragma once

#include "import/cluster/readers_private.h"

#define LH_TOLD_SWITCHES_MAX (LH_PCIE_LEVELS_MAX - 1) /* inside each other, above a GPU */

/* What an element says of a host's CPUs. */
typedef struct {
    const char *arch, *vendor; /* NULL: not said */
    bool modelled;             /* whether @family and @model are said */
    uint64_t family, model;
} LhToldCpu;

/* What a link between sockets carries, bytes/s; 0, and in *@missing what does not tell it, if it is
 * not known. @name: the CPUs that it is of, static. */
double lh_told_socket_rate(const LhToldCpu *cpu, const char **name, const char **missing);

/* Of a PCIe link, what NCCL counts on for messages between GPUs that leave their switch. */
double lh_told_share_by_memory(const LhToldCpu *cpu);

/* Whether NCCL lets two GPUs that are alone reach each other directly, however far they are. */
bool lh_told_is_direct_for_two(const LhToldCpu *cpu);

/* A tree that a reader makes. */
void lh_told_tree_init(LhToldTree *tree, guint gpus);
void lh_told_tree_clear(LhToldTree *tree);

/* The groups of @gpus GPUs of which those of equal @group are one, numbered as GPUs come. Caller
 * unrefs. */
GArray *lh_told_groups(const uint32_t *group, guint gpus);
guint lh_told_groups_count(const GArray *of_gpu);

/*
 * Adds a level outside of those that are there, in place of one of the same groups: a message
 * crosses both then, and the slower one counts. Takes @of_gpu over, and drops it if nothing is
 * outside of it.
 */
void lh_told_tree_add(LhToldTree *tree, const char *name, GArray *of_gpu, double up,
                      const char *source);

/* The tree of the file that is read, as found in line @line; takes what @tree has. A file that says
 * more holds. False with the error set if another one has GPUs in other groups. */
bool lh_told_add_tree(LhToldReader *r, LhToldTree *tree, guint line);

/* How far two GPUs are from each other, in a table of all. */
typedef enum {
    LH_TOLD_ON_SWITCH, /* of PCIe, or on several */
    LH_TOLD_ON_SOCKET,
    LH_TOLD_BEYOND, /* on several sockets */
    LH_TOLD_UNSAID, /* NVLink joins them, so that the table says nothing of PCIe */
} LhToldReach;

/* Adds the tree of a table in line @line: @reach[a * gpus + b], LhToldReach. @node: of each GPU a
 * number, equal for GPUs on CPUs that are equal, UINT32_MAX if that is not said. False with the
 * error set if the table is of no tree. */
bool lh_told_add_reaches(LhToldReader *r, guint gpus, const uint32_t *reach, const uint32_t *node,
                         guint line);
