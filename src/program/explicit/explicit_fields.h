/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the explicit JSON form, field by field. Reading decodes a file into these structs and
 * then builds a program from them.
 */
#pragma once

#include "base/json/json_writer.h"
#include "program/explicit/explicit.h"

/* Values of absent optional numbers and choices. */
#define LH_FORM_ABSENT UINT64_MAX
#define LH_FORM_NO_CHOICE (-1)
#define LH_FORM_NO_SHIFT INT64_MIN
#define LH_FORM_NO_POSITION INT64_MIN

typedef struct {
    uint64_t ranks, data_parallel_size, batch, seq_length, heads, groups, head_dim;
    uint64_t hidden_size;
    int dtype;
    bool causal;
    uint64_t window;
    GArray *document_ends;
    bool linear;
    double scale, decay;
    int pass; /* index into lh_pass_names */
    GPtrArray *options;
    bool keep_saved, overlap, published_code;
    int gradient_wire;
} LhFormParams;

typedef struct {
    char *name;
    int kind, role, dtype; /* dtype may be LH_FORM_NO_CHOICE */
    bool by_heads, on_host;
    uint64_t parts, part_bytes, element_bytes;
    uint64_t head_dim;
} LhFormSlot;

typedef struct {
    char *name;
    int kind;
} LhFormStream;

typedef struct {
    uint64_t to, from, tag, wire_bytes;
    GPtrArray *regions;
} LhFormMessage;

typedef struct {
    uint64_t base, stride, count, outer_stride, outer_count;
} LhFormGroup;

/* An op. Each kind of op uses a few of these fields; the others are absent. */
typedef struct {
    int op, phase;
    uint64_t step, layer, micro_batch, module, communicator;
    char *stream;
    GArray *after; /* of uint64_t, like counts */
    char *slot;
    char *kernel;
    GPtrArray *regions;
    int mask;
    int64_t shift;
    uint64_t nq, nk, pairs, batch, heads, groups, head_dim;
    uint64_t m, n, k, elements; /* 0 if absent, like the next rows */
    uint64_t bytes, beside;
    uint64_t halves, slices, replicas, slice;
    double a, b, c, factor;
    bool by_rows;
    uint64_t experts, choices, members, rows, width, vocabulary, first_row, count, tokens, start,
        traffic;
    double epsilon, base, learning_rate, beta1, beta2, weight_decay, clip;
    bool adds, fp32;
    int64_t q_start, q_part_step, k_start, k_part_step, stride;
    bool first, reversed;
    uint64_t states;
    double scale, decay;
    GArray *messages;
    int collective, reduction;
    LhFormGroup group;
    GPtrArray *send, *receive;
    GArray *counts;
    uint64_t wire_bytes;
} LhFormOp;

typedef struct {
    LhFieldLater ops; /* of LhFormOp */
} LhFormRank;

/* Fields of a rank: its ops only. The field's element_init makes an op with all fields absent. */
extern const LhField lh_form_rank_fields[];

typedef struct {
    GArray *bytes_sent, *flops, *peak_bytes;
} LhFormStated;

typedef struct {
    char *schema;
    LhFormParams params;
    int placement;
    uint64_t placement_split, head_slices, kv_slices, saved_group;
    GPtrArray *saved;
    LhFormStated stated;
    GArray *slots, *streams, *ranks;
} LhForm;

/* State while a file is read. */
typedef struct {
    const LhJson *json;
    LhProgram *program; /* its declarations are complete before ops are read */
    GHashTable *slots;  /* name -> index + 1 */
    uint32_t rank, op;  /* the ones being read */
    uint32_t ops_total, parts_total;
    GError **error;
} LhFormReader;

/* Root field table of the form: reads it, writes it and prints its schema. The ranks come last. */
extern const LhField lh_program_fields[];

/* Returns a form with all fields absent. */
LhForm lh_form_new(void);
