/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the files of the verifier, besides the proof (proof.h) and symbolic
 * contents (symbolic_cells.h): the stages, in execution order, and their parts.
 */
#pragma once

#include "verify/proof.h"
#include "verify/symbolic_cells.h"

/* verify.c: an empty verdict. Caller frees. */
LhVerdict *lh_verdict_new(uint32_t ranks);

/* ---- stages ---- */

/* declarations.c, form.c: everything that is named exists. False: the declarations themselves
 * are unusable. */
bool lh_proof_check_declarations(LhProof *proof);
void lh_proof_check_form(LhProof *proof, LhOpRange ops);
/* The same for a part of a larger program: checks slots and the work of ops, but not ids and
 * dependencies. */
void lh_proof_check_loose_form(LhProof *proof);

/* contract.c: inputs and outputs are those of the pass. Needs declarations. */
bool lh_proof_check_contract(LhProof *proof);

/* happens_before.c: builds the clocks: of all ranks, or of one rank, some ops at a time, in arrays
 * that exist. */
void lh_proof_make_clocks(LhProof *proof);

typedef struct {
    uint32_t last[LH_STREAMS_MAX];
    uint32_t issued[LH_STREAMS_MAX]; /* ops of each stream so far */
    uint32_t host[LH_STREAMS_MAX];   /* complete at the last sync */
} LhRankClocks;

void lh_clocks_begin(LhRankClocks *clocks);
void lh_clocks_add(LhProof *proof, LhRankClocks *clocks, uint32_t rank, LhOpRange ops);

/* Tells whether @earlier (an op on a stream) completes before @later starts, by the order of their
 * rank. Counts as an order checked. */
bool lh_proof_ordered(LhProof *proof, uint32_t earlier, uint32_t later);

/* matching.c: messages and collectives. Its parts: that the order of a rank's calls of collectives
 * is fixed; that both ends of a message, and all members of a collective, agree. */
void lh_proof_match(LhProof *proof);
void lh_proof_check_order_of_calls(LhProof *proof);
void lh_proof_check_pair(LhProof *proof, uint32_t send, uint32_t receive);
void lh_proof_check_meeting(LhProof *proof, const LhMeeting *meeting);

/* happens_before.c: fills order, or reports a deadlock; also decides whether one queue per rank
 * suffices. */
void lh_proof_check_deadlock(LhProof *proof);
/* happens_before.c: checks that a step without a deadlock has none either if a device runs the
 * communication of one dimension of parallelism at a time. */
void lh_proof_check_launches(LhProof *proof);

/* race.c, lifetimes.c: all ranks; or one rank after the other, some ops at a time, of which those
 * before stay in @proof. */
void lh_proof_check_races(LhProof *proof);
void lh_proof_check_memory(LhProof *proof);

typedef struct LhRaceCheck LhRaceCheck;
LhRaceCheck *lh_race_check_new(LhProof *proof);
void lh_race_check_free(LhRaceCheck *check);
void lh_race_check_begin(LhRaceCheck *check);
void lh_race_check_add(LhRaceCheck *check, LhOpRange ops);

typedef struct LhMemoryCheck LhMemoryCheck;
LhMemoryCheck *lh_memory_check_new(LhProof *proof);
void lh_memory_check_free(LhMemoryCheck *check);
void lh_memory_check_begin(LhMemoryCheck *check, uint32_t rank);
void lh_memory_check_add(LhMemoryCheck *check, LhOpRange ops);
void lh_memory_check_end(LhMemoryCheck *check, uint32_t rank);

/* symbolic_exec.c: needs order. */
void lh_proof_check_coverage(LhProof *proof);

/* in_order.c: proves a program with one rank's ops, or one step's, in memory at a time. False: it
 * is not proven this way, and the verdict is as before; the other stages find out why. */
bool lh_proof_run_in_order(LhProof *proof);

/* symbolic_exec.c, for both: contents before the first op, the effects of messages (parts @send
 * and @receive) and collectives, and, if all ops have been @executed, contents at the end. */
void lh_symbolic_begin(LhSymbolicExec *cover, LhProof *proof);
void lh_symbolic_transfer(LhSymbolicExec *cover, uint32_t send, uint32_t receive);
void lh_symbolic_meet(LhSymbolicExec *cover, const LhMeeting *meeting);
void lh_symbolic_end(LhSymbolicExec *cover, bool executed);

/* ---- form of ops; each reports a finding on failure ---- */

/* Reports a finding about @op, a global index of `proof`; yields false. */
#define MALFORMED(op, slot, ...)                                                                   \
    (lh_proof_find(proof, LH_FINDING_MALFORMED,                                                    \
                   (LhFindingPlace){ proof->op_rank[op], op, slot, LH_NONE }, __VA_ARGS__),        \
     false)

/* declarations.c: heads can be split as declared, and kernels get whole groups of them; a slot
 * by itself, independent of the total size. */
bool lh_form_check_slices(LhProof *proof);
bool lh_form_check_slot(LhProof *proof, const LhSlot *slot);

/* form_regions.c: @region of op @g exists; it is a whole input; it may be written (inputs are
 * read-only). */
bool lh_form_check_region(LhProof *proof, uint32_t g, const LhRegion *region);
bool lh_form_check_given(LhProof *proof, uint32_t g, const LhRegion *region);
bool lh_form_check_target(LhProof *proof, uint32_t g, const LhRegion *region);
/* For a region that exists: it names whole parts, as required for all ops that do not move it;
 * or it names whole parts, or one half if the slot has halves. */
bool lh_form_check_whole(LhProof *proof, uint32_t g, const LhRegion *region);
bool lh_form_check_half(LhProof *proof, uint32_t g, const LhRegion *region);

/* form_memories.c: operands of a call in the memory that its kernel needs; a region that must be in
 * device memory; a copy between the memories. */
bool lh_form_check_memories(LhProof *proof, uint32_t g);
bool lh_form_check_on_device(LhProof *proof, uint32_t g, const LhRegion *region);
bool lh_form_check_copy(LhProof *proof, uint32_t g);

/* form_compute.c: a compute op has the operands and arguments of its kernel. */
bool lh_form_check_compute(LhProof *proof, uint32_t g);

/* form_args.c: a call outside attention, whose operands exist, is split as its kernel requires. */
bool lh_form_check_layer_args(LhProof *proof, uint32_t g);

/* form_messages.c: the op moves existing regions, with the stated sizes. */
bool lh_form_check_exchange(LhProof *proof, uint32_t g);
bool lh_form_check_collective(LhProof *proof, uint32_t g);

/* ---- effects of compute ops on symbolic contents; they return false on an error, with a
 * finding or because of an earlier one ---- */

/* effects.c: applies the effect of any compute op. */
void lh_symbolic_apply(LhSymbolicExec *cover, uint32_t g);

/* effects.c: checks that all operands have as many parts as the last one, and that the arguments
 * have as many rows as these parts. */
bool lh_symbolic_check_counts(LhSymbolicExec *cover, uint32_t op);

/* effects.c: lists the block of query rows @q with key segment @key, which op @g computes in the
 * forward pass, if blocks are wanted and the mask allows some of it. */
void lh_symbolic_list_block(LhSymbolicExec *cover, uint32_t g, LhHolding q, uint32_t key);

/* effects_attention.c: effects of attention, forward and backward. */
bool lh_symbolic_attend(LhSymbolicExec *cover, uint32_t g);
bool lh_symbolic_attend_grad(LhSymbolicExec *cover, uint32_t g);

/* effects_linear.c: effects of linear attention; and a check that a call uses the program's
 * decay. */
bool lh_symbolic_check_decay(LhSymbolicExec *cover, uint32_t g);
bool lh_symbolic_state_sum(LhSymbolicExec *cover, uint32_t g);
bool lh_symbolic_state_carry(LhSymbolicExec *cover, uint32_t g);
bool lh_symbolic_state_prefix(LhSymbolicExec *cover, uint32_t g);
bool lh_symbolic_state_apply(LhSymbolicExec *cover, uint32_t g);

/* effects_attention.c: for masks by positions, about @region of the call: its rule is the
 * program's, and the rows of @segment are at the stated positions, from token @start on. */
bool lh_symbolic_check_rule(LhSymbolicExec *cover, uint32_t g, const LhRegion *region);
bool lh_symbolic_check_position(LhSymbolicExec *cover, uint32_t g, const LhRegion *region,
                                uint32_t segment, int64_t start);

/* effects_scores.c: effects of attention that materialises its scores. */
bool lh_symbolic_scores(LhSymbolicExec *cover, uint32_t g);
bool lh_symbolic_softmax(LhSymbolicExec *cover, uint32_t g);
bool lh_symbolic_softmax_grad(LhSymbolicExec *cover, uint32_t g);
bool lh_symbolic_scores_apply(LhSymbolicExec *cover, uint32_t g);
