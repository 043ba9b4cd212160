/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Families of models as Hugging Face's config.json files have them: what their keys mean, what
 * their classes take where a file is silent, and what about them cannot be predicted. This is data;
 * huggingface.c reads files by it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What a key states. Numbers and truths are one kind of value: a truth is 0 or 1. */
typedef enum {
    LH_HF_NONE,
    /* sizes */
    LH_HF_HIDDEN,
    LH_HF_LAYERS,
    LH_HF_HEADS,
    LH_HF_GROUPS,
    LH_HF_HEAD_DIM,
    LH_HF_FFN,
    LH_HF_FFN_TIMES,  /* the MLP's width, in hidden sizes, where FFN is absent */
    LH_HF_FFN_HALVES, /* FFN is the width of gate and up together */
    LH_HF_PLAIN,      /* two matrices, no gate */
    LH_HF_VOCAB,
    LH_HF_POSITIONS,
    LH_HF_LEARNED,        /* positions have an embedding */
    LH_HF_MORE_POSITIONS, /* rows of it beyond POSITIONS */
    LH_HF_TYPES,          /* rows of an embedding of token types */
    LH_HF_EMBEDDING,      /* width of the embedding, if another than HIDDEN */
    LH_HF_EMBEDDING_ALL,  /* it is the width of positions and types, too */
    LH_HF_TIED,
    LH_HF_HEADLESS,      /* there is no head, whatever is said of its embedding */
    LH_HF_MULTI_QUERY,   /* one key-value head, whatever GROUPS says */
    LH_HF_GROUPED,       /* GROUPS counts, MULTI_QUERY does not */
    LH_HF_UNGROUPED,     /* GROUPS counts only with MULTI_QUERY */
    LH_HF_BIDIRECTIONAL, /* a token sees those behind it, too */
    LH_HF_DECODER,       /* not after all */
    LH_HF_NO_ROTARY,
    LH_HF_ROTARY_BASE,
    LH_HF_ROTARY_UP_TO, /* models of a larger HIDDEN have none (ALiBi) */
    /* experts */
    LH_HF_EXPERTS,
    LH_HF_EXPERTS_PER_TOKEN,
    LH_HF_EXPERT_FFN,
    LH_HF_DENSE_FFN, /* of layers without experts, if FFN is an expert's */
    LH_HF_SHARED_EXPERTS,
    LH_HF_SHARED_FFN,      /* of all shared experts together */
    LH_HF_SHARED_IS_WIDE,  /* shared experts, if there are any, are as wide as the model */
    LH_HF_DENSE_FIRST,     /* layers before the first with experts */
    LH_HF_MOE_LAST,        /* the last layer with experts; -1: the model's */
    LH_HF_MOE_PHASE_FIRST, /* experts in layers 0, n, 2n, ...; or a list of 0 and 1 */
    LH_HF_MOE_PHASE_LAST,  /* experts in layers n-1, 2n-1, ... */
    LH_HF_MOE_LAYERS,      /* a list of those, or a text "4,5,6" */
    LH_HF_DENSE_LAYERS,    /* a list of those that have none */
    LH_HF_MLP_TYPES,       /* "dense", "sparse" for each layer */
    /* which layers see what */
    LH_HF_WINDOW,
    LH_HF_USE_WINDOW,
    LH_HF_WINDOW_FIRST,   /* the first layer with a window */
    LH_HF_WINDOW_PATTERN, /* every so many layers one sees all; or "LLLG", L with a window */
    LH_HF_WINDOW_LIST,    /* 1: with a window, 0: without */
    LH_HF_WINDOW_ODD,     /* every second layer has one, from the second on */
    LH_HF_CHUNK,          /* a query sees no farther than its chunk of so many tokens */
    LH_HF_ROPE_LAYERS,    /* 1: rotary positions (and chunks), 0: none (and all tokens) */
    LH_HF_NOPE_INTERVAL,  /* every so many layers one is of the latter kind */
    LH_HF_TOP_K,          /* a query sees so many tokens, which an indexer chooses */
    LH_HF_INDEX_HEADS,
    LH_HF_INDEX_DIM,
    LH_HF_LAYER_TYPES,
    LH_HF_LISTED,         /* a file without a list of its layers is not understood */
    LH_HF_ATTENTION_LIST, /* 0: linear, 1: softmax */
    LH_HF_LINEAR,         /* all layers, unless a list says which */
    LH_HF_LINEAR_GATE,
    /* latent attention */
    LH_HF_QK_NOPE,
    LH_HF_QK_ROPE,
    LH_HF_V_DIM,
    LH_HF_Q_RANK,
    LH_HF_KV_RANK,
    LH_HF_NO_LATENT, /* whatever the sizes above say */
    LH_HF_Q_SHARED,  /* q comes from a projection of this rank, k and v do not */
    /* what else has parameters */
    LH_HF_BIASES, /* all matrices and norms of a layer */
    LH_HF_QKV_BIAS,
    LH_HF_O_BIAS,
    LH_HF_MLP_BIAS,
    LH_HF_NORM_BIAS,
    LH_HF_HEAD_BIAS,
    LH_HF_EXPERT_BIAS,
    LH_HF_ROUTER_BIAS,
    LH_HF_SHARED_GATE,
    LH_HF_SINKS,
    LH_HF_QK_NORM, /* of one head's width */
    LH_HF_QK_NORM_BIAS,
    LH_HF_QK_NORM_HEADS, /* of all heads' width */
    LH_HF_NORMS,         /* of a layer */
    LH_HF_NORM_BARE,     /* norms have no weights */
    LH_HF_EMBEDDING_NORM,
    LH_HF_POOLER,
    LH_HF_FFN_NORM, /* norms within attention and the MLP, of their inner width */
    LH_HF_SLOTS
} LhHfSlot;

typedef enum {
    LH_HF_NUMBER,
    LH_HF_SIGNED, /* a number, or -1 for none */
    LH_HF_REAL,
    LH_HF_TRUTH,
    LH_HF_FALSE_TRUTH, /* true says that it is not so */
    LH_HF_ANY,         /* a number, a list of numbers, or a text */
    LH_HF_WORDS,
    LH_HF_ONE_WORD,    /* true if it is the word in `text` */
    LH_HF_NOT_TRUE,    /* an error with the reason `text` if it is true */
    LH_HF_NOT_MODELLED /* an error with the reason `text`, unless it is null, false, 0 or empty */
} LhHfType;

typedef struct {
    const char *name; /* as it is spelled; "attn_config.kv_n_heads": within an object */
    LhHfType type;
    LhHfSlot slot;
    const char *text;
} LhHfKey;

typedef struct {
    LhHfSlot slot;
    uint64_t value;
} LhHfDefault;

#define LH_HF_KEYS_MAX 8
#define LH_HF_DEFAULTS_MAX 20

/* A row. What it does not say is as in Llama: a gated MLP, causal softmax attention with rotary
 * positions, two norms without biases, embeddings that are not tied. */
typedef struct {
    const char *model_types;   /* words, the first is the family's name */
    const char *architectures; /* words, of files without a model_type; NULL: none */
    const LhHfKey *keys[LH_HF_KEYS_MAX];
    LhHfDefault defaults[LH_HF_DEFAULTS_MAX];
    const char *refused;    /* why none of these models is read: "Mamba-2 layers"; NULL: they are */
    const char *refused_by; /* words: the keys that say so, where a file has them */
} LhHfFamily;

/* The rows, by kin, up to NULL; those of a kin end with a row without model_types. */
extern const LhHfFamily *const lh_hf_families[];

/* Names of a language model's part of a file that also says what the model sees or hears. */
extern const char *const lh_hf_text_parts[];

/* Model types of such files whose part may leave out its own, and what this then is. */
typedef struct {
    const char *model_type, *text_type;
} LhHfWrapper;

extern const LhHfWrapper lh_hf_wrappers[];

/* The row of a model type; NULL: there is none. Likewise of an architecture. */
const LhHfFamily *lh_hf_family(const char *model_type);
const LhHfFamily *lh_hf_family_of_architecture(const char *architecture);

/* Keys that mean the same in every family, and what stands against a model in any. */
extern const LhHfKey lh_hf_common_keys[];

/* Whether the words @words have @word; NULL has none. */
bool lh_hf_has_word(const char *words, const char *word);
