/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of families: macros for rows and keys, and keys that several families have.
 */
#pragma once

#include "model/families.h"

#include <stddef.h>

/* Keys of a list: a number, a boolean, an inverted boolean, a list or text, a word that means true,
 * and two kinds that are rejected. The slot is written without its LH_HF_. */
#define NUMBER(key, size)                                                                          \
    {                                                                                              \
        .name = (key), .type = LH_HF_NUMBER, .slot = LH_HF_##size                                  \
    }
#define IS_SO(key, fact)                                                                           \
    {                                                                                              \
        .name = (key), .type = LH_HF_TRUTH, .slot = LH_HF_##fact                                   \
    }
#define NOT(key, fact)                                                                             \
    {                                                                                              \
        .name = (key), .type = LH_HF_FALSE_TRUTH, .slot = LH_HF_##fact                             \
    }
#define ANY(key, size)                                                                             \
    {                                                                                              \
        .name = (key), .type = LH_HF_ANY, .slot = LH_HF_##size                                     \
    }
#define WORD(key, fact, word)                                                                      \
    {                                                                                              \
        .name = (key), .type = LH_HF_ONE_WORD, .slot = LH_HF_##fact, .text = (word)                \
    }
#define NOT_MODELLED(key, why)                                                                     \
    {                                                                                              \
        .name = (key), .type = LH_HF_NOT_MODELLED, .text = (why)                                   \
    }
#define NOT_TRUE(key, why)                                                                         \
    {                                                                                              \
        .name = (key), .type = LH_HF_NOT_TRUE, .text = (why)                                       \
    }
#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/* The key lists of a row. */
#define KEYS(...)                                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
/* A default. */
#define D(fact, value)                                                                             \
    {                                                                                              \
        LH_HF_##fact, (value)                                                                      \
    }

/* Key lists that several families share; each ends with a key without a name. */
extern const LhHfKey lh_hf_sizes[];
extern const LhHfKey lh_hf_groups[];
extern const LhHfKey lh_hf_biases[];
extern const LhHfKey lh_hf_qkv_biases[];
extern const LhHfKey lh_hf_windows[];
extern const LhHfKey lh_hf_patterns[];
extern const LhHfKey lh_hf_experts[];
extern const LhHfKey lh_hf_latent[];
extern const LhHfKey lh_hf_phi3[];
extern const LhHfKey lh_hf_qk_norms[];
extern const LhHfKey lh_hf_ernie[];
extern const LhHfKey lh_hf_hunyuan[];

/* The tables of related families; each ends with a row without model_types. */
extern const LhHfFamily lh_hf_families_llama[];
extern const LhHfFamily lh_hf_families_qwen[];
extern const LhHfFamily lh_hf_families_gemma[];
extern const LhHfFamily lh_hf_families_deepseek[];
extern const LhHfFamily lh_hf_families_experts[];
extern const LhHfFamily lh_hf_families_gpt[];
extern const LhHfFamily lh_hf_families_encoders[];
extern const LhHfFamily lh_hf_families_unmodelled[];
