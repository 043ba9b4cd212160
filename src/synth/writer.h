/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer of one rank's ops: waits between streams, exchanges, inputs gathered round by round, and
 * results that are sent home and summed there. Streams: several attention streams used in turn, so
 * that one uses what the others leave idle; one that merges, and one that rounds; one for messages
 * within a place; one each for results sent and received; and one for each distance between places,
 * modulo a few, so that places do not wait for each other's rounds.
 */
#pragma once

#include "program/emit.h"
#include "synth/generator.h"
#include "synth/result_routing.h"

#define LH_SYNTH_DISTANCES 3U

enum {
    LH_SYNTH_STREAM_FIRST, /* "compute" and "comm" are declared by lh_pass_declare */
    LH_SYNTH_STREAM_LOCAL,
    LH_SYNTH_STREAM_SECOND,
    LH_SYNTH_STREAM_MERGE,
    LH_SYNTH_STREAM_RESULTS,  /* sent to other places */
    LH_SYNTH_STREAM_CAME,     /* received from other places */
    LH_SYNTH_STREAM_ROUND,    /* rounds sums before they are sent */
    LH_SYNTH_STREAM_DISTANCE, /* and following */
};

/* Slots: inputs and outputs as declared by lh_pass_declare, and the rank's own. "Rows" and
 * "columns" are laid out as in a site (layout.h). */
typedef struct {
    uint16_t q, kv, o, lse, dout, dq, dkv;
    uint16_t rows, columns, block, came, sum;
    /* For the backward pass, in this order; the first two exist from the forward pass on. */
    uint16_t lse_rows, spare;
    uint16_t delta, do_rows, delta_rows;
    uint16_t dq_rows, dkv_columns; /* fp32 */
    uint16_t dq_sent, dkv_sent;    /* the same, as sent */
    uint16_t dq_came, dkv_came;    /* received */
    uint16_t dq_sum, dkv_sum;      /* fp32 */
} LhSynthSlots;

typedef struct {
    const LhSynthLayout *layout;
    const LhSynthProblem *p;
    LhProgram *program;
    LhSynthSlots slots;
    uint32_t streams;                          /* for distances */
    uint32_t attend_count;                     /* attention streams: number ... */
    uint8_t attend[LH_SYNTH_ATTEND_MAX];       /* ... and indices */
    bool early;                                /* slices arrive one by one within a place */
    LhSynthRouting *returns[LH_SYNTH_RESULTS]; /* NULL: none */
} LhSynthEmission;

/* The last op of each stream that must be waited for. */
typedef struct {
    uint32_t last[LH_STREAMS_MAX]; /* op + 1; 0: none */
} LhSynthWaits;

/* Inputs that are sent together from their home to the places that need them. */
typedef struct {
    bool rows;       /* otherwise columns */
    unsigned label;  /* of their messages */
    uint32_t slices; /* of a GPU */
    uint32_t width;  /* parts of a segment in each slot of @from */
    uint32_t slots;
    uint16_t from[3], to[3];
} LhSynthInput;

/* How results of a kind are summed at home. */
typedef struct {
    LhSynthResult kind;
    uint16_t own, sent, came, sum; /* slots: own results, results as sent, received results, sum */
    uint16_t outputs[2];
    uint32_t outputs_count;
    LhKernelId merge;                 /* into the sum */
    LhKernelId own_alone, came_alone; /* directly into the outputs, if there is nothing to add */
    LhKernelId finish;                /* from the sum into the outputs */
    uint32_t *missing;                /* [outputs]: contributions not yet received */
    bool *alone;                      /* [outputs]: there is only one contribution */
    bool *summed;                     /* [outputs]: the sum has been started */
    uint32_t *sum_at;                 /* [outputs]: part of the sum, unless alone */
    uint32_t *sent_at;                /* [parts of @own]: part of @sent, if other ranks get it */
} LhSynthOutput;

typedef struct _LhSynthWriter LhSynthWriter;
struct _LhSynthWriter {
    const LhSynthEmission *e;
    LhEmitter *emitter;
    const LhSynthSite *site;
    uint32_t rank, place, gpu;
    LhSynthWaits copied; /* ops that copy the rank's own pieces into the layout */
    uint32_t
        *gathered;  /* [slices * chunks]: the exchange after which a local chunk is there, + 1 */
    uint32_t local; /* the last of these exchanges */
    LhSynthWaits *arrived; /* [rounds + 1]: inputs of the previous rounds */
    LhSynthWaits kept;     /* backward: all inputs of the forward pass */
    uint32_t *own_rows; /* [parts of o]: parts of the rank's own rows in its layout; LH_SYNTH_NONE:
                           not needed there, or another GPU has those heads */
    uint32_t calls;     /* attention calls so far */
    /* For the current pass, by stage: messages sent after it, and sums of what was received. */
    LhSynthWaits *left, *merged; /* [stages of all turns] */
};

/* --- waits --- */

/* Adds op @id to @waits. */
void lh_synth_note(const LhSynthWriter *w, LhSynthWaits *waits, uint32_t id);
void lh_synth_join(LhSynthWaits *waits, const LhSynthWaits *others);

/* Makes the last op wait; its own stream is in order anyway. */
void lh_synth_wait(const LhSynthWriter *w, const LhSynthWaits *waits);

/* --- calls --- */

/* Arguments of a call on @parts parts of q, or of k and v. */
LhKernelArgs lh_synth_row_args(const LhSynthEmission *e, uint64_t parts);
LhKernelArgs lh_synth_column_args(const LhSynthEmission *e, uint64_t parts);

/* The stream for the next call of attention. */
uint8_t lh_synth_next_stream(LhSynthWriter *w);

/* The entry of a call's row, and that of its column: slice * chunks + chunk. */
uint32_t lh_synth_row_entry(const LhSynthWriter *w, const LhSynthCall *call, uint32_t index);
uint32_t lh_synth_column_entry(const LhSynthWriter *w, const LhSynthCall *call, uint32_t index);

/* Dependencies of a call of turn @turn: its chunks, and the inputs received in the rounds so
 * far. */
LhSynthWaits lh_synth_inputs_of(const LhSynthWriter *w, const LhSynthCall *call, int turn);

/* --- inputs --- */

/* Called for each of the rank's own pieces that its place needs: @from is its part of the input,
 * @at its part of the layout. */
typedef void (*LhSynthPieceFunc)(LhSynthWriter *w, const LhSynthInput *input, uint32_t from,
                                 uint32_t at);
void lh_synth_each_own(LhSynthWriter *w, const LhSynthInput *input, LhSynthPieceFunc each);

/* Inputs that are gathered together. */
typedef struct {
    const LhSynthInput *inputs;
    uint32_t count;
    LhSynthWaits waits; /* for all their exchanges */
} LhSynthGathering;

/* Writes the exchanges within the place; sets `gathered`. */
void lh_synth_gather_local(LhSynthWriter *w, const LhSynthGathering *gathering);

/* Writes the exchanges of inputs needed in round @round, if there is such a round; sets
 * `arrived`. Rounds are written in order. */
void lh_synth_gather_round(LhSynthWriter *w, const LhSynthGathering *gathering, uint32_t round);

/* --- results --- */

/* Results that are complete after the calls of a stage. */
typedef struct {
    uint32_t stage;
    bool remote; /* of tokens that live at other places; otherwise of local ones */
    LhSynthWaits computed, sendable; /* when they are summed here, and when they are sent */
} LhSynthLeaving;

/* Whether the rank's place has a result for an entry that is in @leaving. */
bool lh_synth_leaves(const LhSynthWriter *w, LhSynthResult kind, uint32_t entry,
                     const LhSynthLeaving *leaving);

/* Arguments of a call on @parts parts of a kind of result. */
LhKernelArgs lh_synth_result_args(const LhSynthWriter *w, LhSynthResult kind, uint32_t parts);

/* Initialises and frees the sums of an output. */
void lh_synth_output_init(const LhSynthWriter *w, LhSynthOutput *output);
void lh_synth_output_clear(LhSynthOutput *output);

/* Dependencies of a stage that reuses parts: @by_stage of the stage whose parts it reuses. */
LhSynthWaits lh_synth_before(const LhSynthWaits *by_stage, uint32_t stage);

/* Sums the rank's own results, sends others, and sums those received. */
void lh_synth_return(LhSynthWriter *w, LhSynthOutput *outputs, uint32_t count,
                     const LhSynthLeaving *leaving);

/* Adds a temporary slot of at least one part. */
uint16_t lh_synth_add_slot(LhProgram *program, const char *name, LhTensorKind kind, uint32_t parts,
                           uint64_t part_bytes, uint32_t element_bytes);
