/*
 * A search by several processes. All of them go through the same rounds and decide alike; the turns
 * of a round go round among them, and what each finds is told to all.
 */
#pragma once

#include "plan/search.h"

/* How many turns of @turns are this process's, and which one is number @index of these. @processes
 * NULL: there is no other process. */
guint lh_plan_deal_count(const LhProcesses *processes, guint turns);
guint lh_plan_deal_turn(const LhProcesses *processes, guint index);

/* What processes agree on beside outcomes. */
typedef struct {
    bool interrupted;     /* one of them is */
    uint64_t limit_bytes; /* the largest that one of them knows */
} LhPlanDeal;

/*
 * Tells the outcomes [@turns] at @told, [@count] of numbers below @turns, to all processes, and
 * puts what the others tell in its place, taking over what it has; @deal likewise. Every process
 * must call it. LH_ERROR_RUNTIME: a process is gone, does not answer or is another program.
 */
bool lh_plan_deal_share(const LhProcesses *processes, LhPlanOutcome *outcomes, guint turns,
                        const guint *told, guint count, LhPlanDeal *deal, GError **error);
