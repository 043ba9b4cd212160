/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recomputation of parts of layers, and of some layers only, in the words of Megatron-LM
 * (--recompute-modules, --recompute-method, --recompute-num-layers).
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Modules of a layer. The first rule is standard checkpointing: the module's input is kept, and its
 * whole forward pass runs again. The other discards the module's output once its readers have run,
 * and makes it again before their backward pass. */
typedef enum {
    LH_RECOMPUTE_CORE_ATTN,      /* standard */
    LH_RECOMPUTE_LAYERNORM,      /* output discarded: both norms */
    LH_RECOMPUTE_MLP,            /* standard: of layers without experts */
    LH_RECOMPUTE_MOE,            /* standard: router, experts, shared experts, combination */
    LH_RECOMPUTE_MOE_ACT,        /* output discarded: the activation of routed experts */
    LH_RECOMPUTE_SHARED_EXPERTS, /* standard */
    LH_RECOMPUTE_MLA_UP_PROJ,    /* of latent attention, which steps do not have */
    LH_RECOMPUTE_MODULES
} LhRecomputeModule;

/* Layers of a chunk (of a pipeline stage, or the model) that are recomputed whole. */
typedef enum {
    LH_RECOMPUTE_BLOCK,   /* the first N */
    LH_RECOMPUTE_UNIFORM, /* all, N at a time: only the input of every N-th is kept */
    LH_RECOMPUTE_EVERY,   /* every N-th (torchtitan's selective_ac_option) */
    LH_RECOMPUTE_METHODS
} LhRecomputeMethod;

/* NULL-terminated, indexed by the enums above. */
extern const char *const lh_recompute_module_names[];
extern const char *const lh_recompute_method_names[];

/* What a policy recomputes beyond its name (LhCheckpoint); all zero: nothing. */
typedef struct {
    /* Bits 1 << LhRecomputeModule: LH_CHECKPOINT_SELECTIVE recomputes these; 0: core_attn. */
    uint32_t modules;
    uint32_t layers; /* N: LH_CHECKPOINT_LAYER recomputes layers by `method`; 0: all, one by one */
    LhRecomputeMethod method;
} LhRecompute;

#define LH_RECOMPUTE_BIT(module) (UINT32_C(1) << (LH_RECOMPUTE_##module))

/* Reads "mlp,layernorm": names without repetition, separated by commas. LH_ERROR_INPUT. */
bool lh_recompute_parse(const char *text, uint32_t *modules, GError **error);

/* The modules as text, in the order of the enum, with @between between them. Caller frees. */
char *lh_recompute_text(uint32_t modules, const char *between);
