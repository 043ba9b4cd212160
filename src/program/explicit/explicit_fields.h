/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file of the explicit JSON form says, field by field. Reading decodes it into these structs
 * and then makes a program of them.
 */
#pragma once

#include "base/json/json_writer.h"
#include "program/explicit/explicit.h"

/* Optional numbers and choices that were not given. */
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
    int kind, role, dtype; /* dtype: or LH_FORM_NO_CHOICE */
    bool by_heads;
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

/* Every op has a few of these; the others are as if they were absent. */
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
    uint64_t m, n, k, elements; /* these and the next: 0 if absent */
    uint64_t experts, choices, members, rows, width, vocabulary, first_row, count, tokens, start,
        traffic;
    double epsilon, base, learning_rate, beta1, beta2, weight_decay, clip;
    bool adds;
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

/* Of a rank: its ops, alone. The field's element_init makes an op of which nothing has been said.
 */
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

/* What is known while a file is read. */
typedef struct {
    const LhJson *json;
    LhProgram *program; /* its declarations are complete before ops are read */
    GHashTable *slots;  /* name -> index + 1 */
    uint32_t rank, op;  /* being read */
    uint32_t ops_total, parts_total;
    GError **error;
} LhFormReader;

/* The field table of the form: it reads it, writes it and prints its schema. The ranks stand last.
 */
extern const LhField lh_program_fields[];

/* A form of which nothing has been said yet. */
LhForm lh_form_new(void);
