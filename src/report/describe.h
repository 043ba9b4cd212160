/*
 * What is simulated, in words.
 */
#pragma once

#include "plan/compare.h"

/* " of llama-7b", and that it is taken because no model is given, where that is so. */
void lh_describe_model(const LhSetup *setup, GString *out);

/* "note: ..." for each note of how the model's file was read, a line each. */
void lh_describe_notes(const LhModel *model, GString *out);

/* The same in one field of a table; NULL: there are none. Caller frees. */
char *lh_notes_text(const LhModel *model);

/* What measured collectives of the cluster contradict, its links or each other, and where a profile
 * found other links than its file has: of char *; none
 * with free communication. Caller frees. As "note: ..." lines; and in one field of a table, NULL
 * if there are none. */
GPtrArray *lh_link_notes(const LhSetup *setup);
void lh_describe_link_notes(const LhSetup *setup, GString *out);
char *lh_link_notes_text(const LhSetup *setup);

/* One line on the experts of a step's model: how many a token passes, and what is assumed of their
 * routing and of who holds them, of @tensor tensor-parallel ranks (0: it varies) and by @shard (-1:
 * likewise); nothing of a model without. */
void lh_describe_experts(const LhModel *model, uint32_t tensor, int shard, GString *out);

/* Lines that say what is simulated, on what, with which options, and what is left out. */
void lh_describe_case(const LhSetup *setup, GString *out);

/* "NVLink 371 GB/s; 8 x 48 GB/s to the network", and what of it is as the scenario has it. */
void lh_describe_links(const LhSetup *setup, GString *out);

/*
 * Why a result is out of memory: the peak of the run, on the rank that needs most, and where there
 * was first not enough: "rank 0 needs 83.1 GiB (79.1 GiB to 87.3 GiB in four measurements of five)
 * of 78.7 GiB: saved 41 GiB, weights 12.6 GiB, ...; first exceeded at 1.2 s for gradients, at op 12
 * (backward, layer 31, micro-batch 0)", or, of attention alone, "rank 0 needs 385 GiB of attention
 * buffers and at least 1.7 GiB of weights, a GPU has 80 GiB; ...". Caller frees.
 */
char *lh_describe_memory_limit(const LhSetup *setup, const LhSimResult *result);

/* " (79.1 GiB to 87.3 GiB in four measurements of five)": the error bar of a peak of @bytes;
 * nothing where it has none. */
void lh_describe_peak_interval(const LhSetup *setup, uint64_t bytes, GString *out);

/* "ring: attention of llama-7b, 4,096 tokens on 8 ranks", or "ring: training step of ...": the
 * title of a figure of @program, whose row is called @name; caller frees. */
char *lh_describe_program(const LhSetup *setup, const char *name, const LhProgram *program);

/* "16 ranks", or "2 groups of 8 ranks (data parallel)", of a step all of its ranks; caller frees.
 */
char *lh_describe_all_ranks(const LhSetup *setup);

/* "op 12 (backward, layer 3, micro-batch 0)", or "before the first op"; caller frees. */
char *lh_describe_memory_op(const LhMemoryOp *op);

/* One line on the schedules that are not of this kind of attention; nothing if there are none. */
void lh_describe_left_out(const LhSetup *setup, GString *out);
