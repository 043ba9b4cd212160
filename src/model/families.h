/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Families of models in Hugging Face's config.json: the meaning of their keys, their classes'
 * defaults, and what is not supported. This is data; huggingface.c reads files by it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The meaning of a key. Numbers and booleans share one value: a boolean is 0 or 1. */
typedef enum {
    LH_HF_NONE,
    /* sizes */
    LH_HF_HIDDEN,
    LH_HF_LAYERS,
    LH_HF_HEADS,
    LH_HF_GROUPS,
    LH_HF_HEAD_DIM,
    LH_HF_FFN,
    LH_HF_FFN_TIMES,  /* the MLP's width as a multiple of the hidden size, where FFN is absent */
    LH_HF_FFN_HALVES, /* FFN is the total width of gate and up */
    LH_HF_PLAIN,      /* two matrices, no gate (a plain MLP) */
    LH_HF_VOCAB,
    LH_HF_POSITIONS,
    LH_HF_LEARNED,        /* positions have a learned embedding */
    LH_HF_MORE_POSITIONS, /* rows of it beyond POSITIONS */
    LH_HF_TYPES,          /* rows of an embedding of token types */
    LH_HF_EMBEDDING,      /* width of the embedding, if another than HIDDEN */
    LH_HF_EMBEDDING_ALL,  /* positions and types have this width, too */
    LH_HF_TIED,
    LH_HF_HEADLESS,      /* no language-model head, whether the embedding is tied or not */
    LH_HF_MULTI_QUERY,   /* one key-value head, whatever GROUPS says */
    LH_HF_GROUPED,       /* GROUPS counts, MULTI_QUERY does not */
    LH_HF_UNGROUPED,     /* GROUPS counts only if MULTI_QUERY is set */
    LH_HF_BIDIRECTIONAL, /* a token also attends to later tokens */
    LH_HF_DECODER,       /* overrides BIDIRECTIONAL: causal */
    LH_HF_NO_ROTARY,
    LH_HF_ROTARY_BASE,
    LH_HF_ROTARY_UP_TO, /* models with a larger HIDDEN have no rotary embedding (ALiBi) */
    /* experts */
    LH_HF_EXPERTS,
    LH_HF_EXPERTS_PER_TOKEN,
    LH_HF_EXPERT_FFN,
    LH_HF_DENSE_FFN, /* of layers without experts, where FFN is an expert's width */
    LH_HF_SHARED_EXPERTS,
    LH_HF_SHARED_FFN,      /* of all shared experts together */
    LH_HF_SHARED_IS_WIDE,  /* each shared expert is as wide as the dense MLP */
    LH_HF_DENSE_FIRST,     /* number of layers before the first with experts */
    LH_HF_MOE_LAST,        /* the last layer with experts; -1: the model's last */
    LH_HF_MOE_PHASE_FIRST, /* experts in layers 0, n, 2n, ...; or a list of 0 and 1 */
    LH_HF_MOE_PHASE_LAST,  /* experts in layers n-1, 2n-1, ... */
    LH_HF_MOE_LAYERS,      /* the layers with experts: a list, or a text "4,5,6" */
    LH_HF_DENSE_LAYERS,    /* list of the layers without experts */
    LH_HF_MLP_TYPES,       /* "dense", "sparse" for each layer */
    /* attention range of layers */
    LH_HF_WINDOW,
    LH_HF_USE_WINDOW,
    LH_HF_WINDOW_FIRST,   /* the first layer with a window */
    LH_HF_WINDOW_PATTERN, /* every n-th layer attends to all tokens; or "LLLG", L with a window */
    LH_HF_WINDOW_LIST,    /* 1: with a window, 0: without */
    LH_HF_WINDOW_ODD,     /* every second layer has a window, from the second on */
    LH_HF_CHUNK,          /* chunk size: a query attends only within its chunk */
    LH_HF_ROPE_LAYERS,    /* 1: rotary positions (and chunks), 0: none (and all tokens) */
    LH_HF_NOPE_INTERVAL,  /* every n-th layer is of the latter kind */
    LH_HF_TOP_K,          /* number of tokens, selected by an indexer, that a query attends to */
    LH_HF_INDEX_HEADS,
    LH_HF_INDEX_DIM,
    LH_HF_LAYER_TYPES,
    LH_HF_LISTED,         /* a file must list its layers */
    LH_HF_ATTENTION_LIST, /* 0: linear, 1: softmax */
    LH_HF_LINEAR,         /* all layers are linear, unless a list says otherwise */
    LH_HF_LINEAR_GATE,
    /* latent attention */
    LH_HF_QK_NOPE,
    LH_HF_QK_ROPE,
    LH_HF_V_DIM,
    LH_HF_Q_RANK,
    LH_HF_KV_RANK,
    LH_HF_NO_LATENT, /* no latent attention, even if the sizes above are given */
    LH_HF_Q_SHARED,  /* rank of the projection that only q goes through */
    /* other parameters */
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
    LH_HF_FALSE_TRUTH, /* inverted: true means 0 */
    LH_HF_ANY,         /* a number, a list of numbers, or a text */
    LH_HF_WORDS,
    LH_HF_ONE_WORD,    /* 1 if the value is the word in `text` */
    LH_HF_NOT_TRUE,    /* rejected with the reason `text` if it is true */
    LH_HF_NOT_MODELLED /* rejected with the reason `text`, unless it is null, false, 0 or empty */
} LhHfType;

typedef struct {
    const char *name; /* spelled as in files; "attn_config.kv_n_heads": within an object */
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

/* A family. Defaults of its members are Llama's: a gated MLP, causal softmax attention with rotary
 * positions, two norms without biases, untied embeddings. */
typedef struct {
    const char *model_types;   /* space-separated; the first is the family's name */
    const char *architectures; /* space-separated, for files without a model_type; NULL: none */
    const LhHfKey *keys[LH_HF_KEYS_MAX];
    LhHfDefault defaults[LH_HF_DEFAULTS_MAX];
    /* Why none of these models is supported: "Mamba-2 layers"; NULL: they are. */
    const char *refused;
    const char *refused_by; /* space-separated: keys that show this, where a file has them */
} LhHfFamily;

/* Tables of related families, up to NULL; each ends with a row without model_types. */
extern const LhHfFamily *const lh_hf_families[];

/* Names of the language-model part in files of multimodal models. */
extern const char *const lh_hf_text_parts[];

/* Model types of such files whose language-model part may omit its own type, and that type. */
typedef struct {
    const char *model_type, *text_type;
} LhHfWrapper;

extern const LhHfWrapper lh_hf_wrappers[];

/* The family of a model type, or of an architecture; NULL: unknown. */
const LhHfFamily *lh_hf_family(const char *model_type);
const LhHfFamily *lh_hf_family_of_architecture(const char *architecture);

/* Keys with the same meaning in every family, and keys that make any model unsupported. */
extern const LhHfKey lh_hf_common_keys[];

/* Whether the space-separated list @words (may be NULL) contains @word. */
bool lh_hf_has_word(const char *words, const char *word);
