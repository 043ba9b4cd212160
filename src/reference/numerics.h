/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run computes with, and what it should compute: inputs by seed, and the fp64 reference of
 * the rows that this process holds. Whether the run did is in tolerance.h.
 */
#pragma once

#include "reference/reference.h"
#include "runtime/api/control.h"
#include "runtime/executor.h"

typedef enum {
    LH_INPUTS_NORMAL,   /* q, k, v and do are standard normal */
    LH_INPUTS_LOGITS4,  /* logits 4 times as large ... */
    LH_INPUTS_LOGITS20, /* ... and 20 times: nearly one key a query */
    LH_INPUTS_KEY60,    /* one key has 60 added to its logits */
    LH_INPUTS_EQUAL,    /* all keys are equal, and so are the logits of a query */
} LhInputKind;

/* "normal", "logits4", "logits20", "key60", "equal"; NULL-terminated. */
extern const char *const lh_input_names[];

typedef struct {
    LhInputKind inputs;
    uint64_t seed;
    LhReference reference; /* inputs rounded to the storage type; outputs not rounded */
    double seconds;        /* that the reference took here; not the inputs */
    /* Owned: the rows that the reference knows, by their index, as drawn by row_sampling.h; NULL:
     * all that this process holds. */
    uint8_t *queries, *keys;
} LhNumerics;

/* Makes inputs and reference of all rows, on as many threads as there are cores or ranks; costs
 * about 14 B h d flops for each pair of tokens that the mask allows. Caller frees. */
LhNumerics *lh_numerics_new(const LhProgramParams *params, uint64_t seed, LhInputKind inputs);

/*
 * The same of the rows alone that the ranks of this process hold, with as many threads; processes
 * tell each other through @control, an open one of theirs, what they need of each other's rows.
 * NULL with @error (LH_ERROR_RUNTIME) if that fails.
 */
LhNumerics *lh_numerics_new_shared(const LhProgram *program, uint64_t seed, LhInputKind inputs,
                                   const LhOpenControl *control, GError **error);
void lh_numerics_free(LhNumerics *numerics);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhNumerics, lh_numerics_free)

/* Inputs alone; what the reference computes is 0. Caller frees. */
LhNumerics *lh_numerics_new_inputs(const LhProgramParams *params, uint64_t seed, LhInputKind inputs,
                                   unsigned threads);

/* What gradients of keys need to know of queries: bits, by row, of what the reference has of it. */
#define LH_KNOWS_LSE 1
#define LH_KNOWS_DELTA 2 /* and delta_size2 */
#define LH_KNOWS_BOTH (LH_KNOWS_LSE | LH_KNOWS_DELTA)

/* Every process tells the others what it knows of rows of queries; @known grows by what they know.
 * False with @error (LH_ERROR_RUNTIME) if that fails. */
bool lh_numerics_tell(LhNumerics *numerics, uint8_t *known, const LhOpenControl *control,
                      GError **error);

/* As many threads as compute in a run, where that is more than there are cores: they share those
 * with whatever else runs there. */
unsigned lh_numerics_threads(const LhProgramParams *params);

/* Fills part @part of input slot @slot; with arbitrary numbers where the reference has no such
 * tensor. */
void lh_numerics_load(const LhNumerics *numerics, const LhProgram *program, uint32_t rank,
                      uint16_t slot, uint32_t part, unsigned char *data);

/* The same as LhRunParams.load, whose data is this. */
typedef struct {
    const LhNumerics *numerics;
    const LhProgram *program;
} LhNumericsLoad;

void lh_numerics_load_part(void *load, uint32_t rank, uint16_t slot, uint32_t part,
                           unsigned char *data);
