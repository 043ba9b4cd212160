/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs and expected outputs of a run: inputs by seed, and the fp64 reference of the rows that
 * this process holds. tolerance.h compares the run's outputs with it.
 */
#pragma once

#include "reference/reference.h"
#include "runtime/api/control.h"
#include "runtime/executor.h"

typedef enum {
    LH_INPUTS_NORMAL,   /* q, k, v and do are standard normal */
    LH_INPUTS_LOGITS4,  /* logits of 4 times the size ... */
    LH_INPUTS_LOGITS20, /* ... and of 20 times: nearly one key per query */
    LH_INPUTS_KEY60,    /* the logits of one key are raised by 60 */
    LH_INPUTS_EQUAL,    /* all keys are equal, hence all logits of a query */
} LhInputKind;

/* "normal", "logits4", "logits20", "key60", "equal"; NULL-terminated. */
extern const char *const lh_input_names[];

typedef struct {
    LhInputKind inputs;
    uint64_t seed;
    LhReference reference; /* inputs rounded to the storage type; outputs not rounded */
    double seconds;        /* duration of the reference here, without the inputs */
    /*
     * Owned: rows of the reference to compare, by index, as drawn by row_sampling.h; NULL: all rows
     * that this process holds.
     */
    uint8_t *queries, *keys;
} LhNumerics;

/*
 * Creates inputs and reference of all rows, on as many threads as there are cores or ranks. Costs
 * about 14 B h d flops per pair of tokens that the mask allows. Caller frees.
 */
LhNumerics *lh_numerics_new(const LhProgramParams *params, uint64_t seed, LhInputKind inputs);

/*
 * The same for the rows that the ranks of this process hold, with as many threads as ranks.
 * Processes exchange the row data that they need through @control, which is open. Returns NULL with
 * @error (LH_ERROR_RUNTIME) if that fails.
 */
LhNumerics *lh_numerics_new_shared(const LhProgram *program, uint64_t seed, LhInputKind inputs,
                                   const LhOpenControl *control, GError **error);
void lh_numerics_free(LhNumerics *numerics);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhNumerics, lh_numerics_free)

/* Creates inputs only; the reference's results are 0. Caller frees. */
LhNumerics *lh_numerics_new_inputs(const LhProgramParams *params, uint64_t seed, LhInputKind inputs,
                                   unsigned threads);

/* Data about query rows that gradients of keys need: bits, by row, of what the reference has. */
#define LH_KNOWS_LSE 1
#define LH_KNOWS_DELTA 2 /* and delta_size2 */
#define LH_KNOWS_BOTH (LH_KNOWS_LSE | LH_KNOWS_DELTA)

/*
 * Exchanges the known data of query rows with all processes; @known gains the bits that they know.
 * Returns false with @error (LH_ERROR_RUNTIME) if that fails.
 */
bool lh_numerics_tell(LhNumerics *numerics, uint8_t *known, const LhOpenControl *control,
                      GError **error);

/*
 * Returns the number of threads for the reference: the cores, or the ranks if there are more; other
 * work shares the cores with them.
 */
unsigned lh_numerics_threads(const LhProgramParams *params);

/*
 * Fills in part @part of input slot @slot; with arbitrary numbers if the reference has no such
 * tensor.
 */
void lh_numerics_load(const LhNumerics *numerics, const LhProgram *program, uint32_t rank,
                      uint16_t slot, uint32_t part, unsigned char *data);

/* lh_numerics_load() as LhRunParams.load; this is its data. */
typedef struct {
    const LhNumerics *numerics;
    const LhProgram *program;
} LhNumericsLoad;

void lh_numerics_load_part(void *load, uint32_t rank, uint16_t slot, uint32_t part,
                           unsigned char *data);
