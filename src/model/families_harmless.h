/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of Hugging Face's config.json that do not affect the shape of a language model, and keys of
 * parts that are left out.
 */
#pragma once

#include <stdbool.h>

/* Parts of a model that are left out, with the keys that show them. */
typedef struct {
    const char *keys;   /* space-separated */
    const char *reason; /* second half of a sentence */
} LhHfLeftOut;

extern const LhHfLeftOut lh_hf_left_out[];

/* Whether @key does not affect the shape of a language model in any family. */
bool lh_hf_is_harmless(const char *key);
