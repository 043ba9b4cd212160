/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of Hugging Face's config.json that say nothing of the shape of a language model, and those
 * of parts that are left out.
 */
#pragma once

#include <stdbool.h>

/* Parts of a model that are left out, by the keys that say that there are any. */
typedef struct {
    const char *keys;   /* words */
    const char *reason; /* a sentence's end */
} LhHfLeftOut;

extern const LhHfLeftOut lh_hf_left_out[];

/* Whether @key has no influence on the shape of a language model, in whatever family. */
bool lh_hf_is_harmless(const char *key);
