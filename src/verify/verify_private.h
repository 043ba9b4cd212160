/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the verifier share beside the proof (proof.h) and symbolic contents
 * (symbolic_cells.h): the stages, in the order in which they run, and what they are made of.
 */
#pragma once

#include "verify/proof.h"
#include "verify/symbolic_cells.h"

/* ---- stages ---- */

/* declarations.c, form.c: everything that is named exists. False: the declarations themselves
 * cannot be used. */
bool lh_proof_check_declarations(LhProof *proof);
void lh_proof_check_form(LhProof *proof);
/* The same of ops that are part of a program, however large that is: of slots and of what ops do,
 * not of their ids and waits. */
void lh_proof_check_loose_form(LhProof *proof);

/* contract.c: the inputs and outputs are those of the pass. Needs declarations. */
bool lh_proof_check_contract(LhProof *proof);

/* happens_before.c: clocks; does @earlier (an op on a stream) complete before @later starts, by the
 * order of their rank? Counts as an order checked. */
void lh_proof_make_clocks(LhProof *proof);
bool lh_proof_ordered(LhProof *proof, uint32_t earlier, uint32_t later);

/* matching.c: messages and collectives. */
void lh_proof_match(LhProof *proof);

/* happens_before.c: fills order, or finds a deadlock; and the verdict on one queue for each rank.
 */
void lh_proof_check_deadlock(LhProof *proof);
/* happens_before.c: a step without a deadlock has none either if a device runs the communication of
 * one dimension of parallelism at a time. */
void lh_proof_check_launches(LhProof *proof);

/* race.c, lifetimes.c */
void lh_proof_check_races(LhProof *proof);
void lh_proof_check_memory(LhProof *proof);

/* symbolic_exec.c: needs order. */
void lh_proof_check_coverage(LhProof *proof);

/* ---- the form of an op, or a finding ---- */

/* A finding about @op, a global index, of `proof`; false. */
#define MALFORMED(op, slot, ...)                                                                   \
    (lh_proof_find(proof, LH_FINDING_MALFORMED,                                                    \
                   (LhFindingPlace){ proof->op_rank[op], op, slot, LH_NONE }, __VA_ARGS__),        \
     false)

/* declarations.c: the heads can be cut as the program says, and a kernel is called with whole
 * groups of them; what a slot is, whatever the size of the whole. */
bool lh_form_check_slices(LhProof *proof);
bool lh_form_check_slot(LhProof *proof, const LhSlot *slot);

/* form_regions.c: @region of op @g exists; it is all of an input; it may be written, since inputs
 * stay what they are. */
bool lh_form_check_region(LhProof *proof, uint32_t g, const LhRegion *region);
bool lh_form_check_given(LhProof *proof, uint32_t g, const LhRegion *region);
bool lh_form_check_target(LhProof *proof, uint32_t g, const LhRegion *region);
/* Of a region that exists: it is whole, as all are that are not moved; it is whole, or one half
 * where there are two. */
bool lh_form_check_whole(LhProof *proof, uint32_t g, const LhRegion *region);
bool lh_form_check_half(LhProof *proof, uint32_t g, const LhRegion *region);

/* form_compute.c: a compute op whose kernel exists has the operands and arguments that it takes. */
bool lh_form_check_compute(LhProof *proof, uint32_t g);

/* form_args.c: a call outside attention, whose operands exist, is cut as its kernel can take it. */
bool lh_form_check_layer_args(LhProof *proof, uint32_t g);

/* form_messages.c: the op moves what exists, in the sizes that it says. */
bool lh_form_check_exchange(LhProof *proof, uint32_t g);
bool lh_form_check_collective(LhProof *proof, uint32_t g);

/* ---- effects of compute ops on symbolic contents. What may be wrong is false, with a finding or
 * because of an earlier one. ---- */

/* effects.c: the effect of a compute op, whichever it is. */
void lh_symbolic_apply(LhSymbolicExec *cover, uint32_t g);

/* effects.c: all operands have as many parts as the last one, and the arguments as many rows as
 * that. */
bool lh_symbolic_check_counts(LhSymbolicExec *cover, uint32_t op);

/* effects.c: lists the block of query rows @q with key segment @key, which op @g computes in the
 * forward pass, if blocks are wanted and the mask allows some of it. */
void lh_symbolic_list_block(LhSymbolicExec *cover, uint32_t g, LhHolding q, uint32_t key);

/* effects_attention.c: effects of attention, forward and backward. */
bool lh_symbolic_attend(LhSymbolicExec *cover, uint32_t g);
bool lh_symbolic_attend_grad(LhSymbolicExec *cover, uint32_t g);

/* effects_linear.c: effects of linear attention; and whether a call decays as the program says. */
bool lh_symbolic_check_decay(LhSymbolicExec *cover, uint32_t g);
bool lh_symbolic_state_sum(LhSymbolicExec *cover, uint32_t g);
bool lh_symbolic_state_carry(LhSymbolicExec *cover, uint32_t g);
bool lh_symbolic_state_prefix(LhSymbolicExec *cover, uint32_t g);
bool lh_symbolic_state_apply(LhSymbolicExec *cover, uint32_t g);

/* effects_attention.c: for masks by positions, about @region of the call: its rule is the
 * program's, and the rows of @segment stand where it says, from token @start on. */
bool lh_symbolic_check_rule(LhSymbolicExec *cover, uint32_t g, const LhRegion *region);
bool lh_symbolic_check_position(LhSymbolicExec *cover, uint32_t g, const LhRegion *region,
                                uint32_t segment, int64_t start);

/* effects_scores.c: effects of attention whose scores are written out. */
bool lh_symbolic_scores(LhSymbolicExec *cover, uint32_t g);
bool lh_symbolic_softmax(LhSymbolicExec *cover, uint32_t g);
bool lh_symbolic_softmax_grad(LhSymbolicExec *cover, uint32_t g);
bool lh_symbolic_scores_apply(LhSymbolicExec *cover, uint32_t g);
