/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank's ops, as they are written: waits between streams, exchanges, inputs that are gathered
 * round by round, and results that go home and are added up there. Streams: some that attend in
 * turn, so that one uses what the others leave idle; one that merges, and one that rounds; one for
 * messages within a place, one each for results that leave and that come, and one for each distance
 * between places, modulo a few: places do not wait for each other's rounds.
 */
#pragma once

#include "program/emit.h"
#include "synth/generator.h"
#include "synth/result_routing.h"

#define LH_SYNTH_DISTANCES 3U

enum {
    LH_SYNTH_STREAM_FIRST, /* "compute" and "comm" are lh_pass_declare's */
    LH_SYNTH_STREAM_LOCAL,
    LH_SYNTH_STREAM_SECOND,
    LH_SYNTH_STREAM_MERGE,
    LH_SYNTH_STREAM_RESULTS,  /* that leave for other places */
    LH_SYNTH_STREAM_CAME,     /* that come from there */
    LH_SYNTH_STREAM_ROUND,    /* sums are rounded before they leave */
    LH_SYNTH_STREAM_DISTANCE, /* and the next ones */
};

/* Slots: inputs and outputs as lh_pass_declare has them, and a rank's own. "Rows" and "columns" are
 * laid out as a site (layout.h) says. */
typedef struct {
    uint16_t q, kv, o, lse, dout, dq, dkv;
    uint16_t rows, columns, block, came, sum;
    /* Of the backward pass, in this order; the first two are there from the forward pass on. */
    uint16_t lse_rows, spare;
    uint16_t delta, do_rows, delta_rows;
    uint16_t dq_rows, dkv_columns; /* fp32 */
    uint16_t dq_sent, dkv_sent;    /* the same, as they travel */
    uint16_t dq_came, dkv_came;    /* from others */
    uint16_t dq_sum, dkv_sum;      /* fp32 */
} LhSynthSlots;

typedef struct {
    const LhSynthLayout *layout;
    const LhSynthProblem *p;
    LhProgram *program;
    LhSynthSlots slots;
    uint32_t streams;                          /* for distances */
    uint32_t attend_count;                     /* streams that attend ... */
    uint8_t attend[LH_SYNTH_ATTEND_MAX];       /* ... and which */
    bool early;                                /* slices come one by one within a place */
    LhSynthRouting *returns[LH_SYNTH_RESULTS]; /* NULL: there are none */
} LhSynthEmission;

/* The last ops of each stream that something waits for. */
typedef struct {
    uint32_t last[LH_STREAMS_MAX]; /* op + 1; 0: none */
} LhSynthWaits;

/* Inputs that travel together from their home to the places that need them. */
typedef struct {
    bool rows;       /* else columns */
    unsigned label;  /* of their messages */
    uint32_t slices; /* of a GPU */
    uint32_t width;  /* parts of a segment in each of @from */
    uint32_t slots;
    uint16_t from[3], to[3];
} LhSynthInput;

/* How results of a kind are added up at home. */
typedef struct {
    LhSynthResult kind;
    uint16_t own, sent, came, sum; /* what the rank has, as it sends it; what comes; the sum */
    uint16_t outputs[2];
    uint32_t outputs_count;
    LhKernelId merge;                 /* into the sum */
    LhKernelId own_alone, came_alone; /* into the outputs, where nothing has to be added */
    LhKernelId finish;                /* from the sum into the outputs */
    uint32_t *missing;                /* [outputs]: contributions that have not come */
    bool *alone;                      /* likewise: there is one contribution only */
    bool *summed;                     /* likewise: its sum has begun */
    uint32_t *sum_at;                 /* likewise: its part of the sum, unless it is alone */
    uint32_t *sent_at;                /* [parts of @own]: its part of @sent, if others get it */
} LhSynthOutput;

typedef struct _LhSynthWriter LhSynthWriter;
struct _LhSynthWriter {
    const LhSynthEmission *e;
    LhEmitter *emitter;
    const LhSynthSite *site;
    uint32_t rank, place, gpu;
    LhSynthWaits copied; /* the rank's own pieces are in the layout */
    uint32_t *gathered; /* [slices * chunks]: the exchange behind which a local one is there, + 1 */
    uint32_t local;     /* the last of them */
    LhSynthWaits *arrived; /* [rounds + 1]: inputs of the rounds before */
    LhSynthWaits kept;     /* backward: all that came forward */
    uint32_t *own_rows; /* [parts of o]: where the rank's own rows are in its layout; LH_SYNTH_NONE:
                           they are not needed there, or another GPU has those heads */
    uint32_t calls;     /* of attention so far */
    /* Of the pass, by stage: the messages that left behind it, and the sums of what came. */
    LhSynthWaits *left, *merged; /* [stages of all turns] */
};

/* --- waits --- */

/* @id is among @waits. */
void lh_synth_note(const LhSynthWriter *w, LhSynthWaits *waits, uint32_t id);
void lh_synth_join(LhSynthWaits *waits, const LhSynthWaits *others);

/* The last op waits; its own stream is in order anyway. */
void lh_synth_wait(const LhSynthWriter *w, const LhSynthWaits *waits);

/* --- calls --- */

/* Arguments of a call on @parts parts of q, or of k and v. */
LhKernelArgs lh_synth_row_args(const LhSynthEmission *e, uint64_t parts);
LhKernelArgs lh_synth_column_args(const LhSynthEmission *e, uint64_t parts);

/* The stream that the next call of attention takes. */
uint8_t lh_synth_next_stream(LhSynthWriter *w);

/* The entry of a call's row, and that of its column: slice * chunks + chunk. */
uint32_t lh_synth_row_entry(const LhSynthWriter *w, const LhSynthCall *call, uint32_t index);
uint32_t lh_synth_column_entry(const LhSynthWriter *w, const LhSynthCall *call, uint32_t index);

/* What a call of turn @turn waits for: its chunks, and what has come in the rounds so far. */
LhSynthWaits lh_synth_inputs_of(const LhSynthWriter *w, const LhSynthCall *call, int turn);

/* --- inputs --- */

/* Called for each of the rank's own pieces that its place needs: @from is its part among the
 * inputs, @at its part of the layout. */
typedef void (*LhSynthPieceFunc)(LhSynthWriter *w, const LhSynthInput *input, uint32_t from,
                                 uint32_t at);
void lh_synth_each_own(LhSynthWriter *w, const LhSynthInput *input, LhSynthPieceFunc each);

/* Inputs that are gathered together. */
typedef struct {
    const LhSynthInput *inputs;
    uint32_t count;
    LhSynthWaits waits; /* of all their exchanges */
} LhSynthGathering;

/* Exchanges within the place: sets `gathered`. */
void lh_synth_gather_local(LhSynthWriter *w, const LhSynthGathering *gathering);

/* Exchanges of what round @round needs, if there is such a round: sets `arrived`. The rounds come
 * in their order. */
void lh_synth_gather_round(LhSynthWriter *w, const LhSynthGathering *gathering, uint32_t round);

/* --- results --- */

/* Results that are complete behind the calls of a stage. */
typedef struct {
    uint32_t stage;
    bool remote;                     /* of tokens that live at other places; else of the own */
    LhSynthWaits computed, sendable; /* when they are added up here, and when they are sent */
} LhSynthLeaving;

/* Whether the rank's place has a result for an entry that is among those. */
bool lh_synth_leaves(const LhSynthWriter *w, LhSynthResult kind, uint32_t entry,
                     const LhSynthLeaving *leaving);

/* Arguments of a call on @parts parts of a kind of result. */
LhKernelArgs lh_synth_result_args(const LhSynthWriter *w, LhSynthResult kind, uint32_t parts);

/* Begins and ends the sums of an output. */
void lh_synth_output_init(const LhSynthWriter *w, LhSynthOutput *output);
void lh_synth_output_clear(LhSynthOutput *output);

/* What a stage waits for before it uses parts again: @by_stage of those long enough before. */
LhSynthWaits lh_synth_before(const LhSynthWaits *by_stage, uint32_t stage);

/* The rank's own are added up, others sent, and those that come added up. */
void lh_synth_return(LhSynthWriter *w, LhSynthOutput *outputs, uint32_t count,
                     const LhSynthLeaving *leaving);

/* A temporary slot of at least one part. */
uint16_t lh_synth_add_slot(LhProgram *program, const char *name, LhTensorKind kind, uint32_t parts,
                           uint64_t part_bytes, uint32_t element_bytes);
