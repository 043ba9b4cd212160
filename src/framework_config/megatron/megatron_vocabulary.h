/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many rows the embedding has.
 */
#pragma once

#include "framework_config/megatron/megatron_shape.h"

/* Rows of the embedding: words, and what makes their number divisible, also by tensor parallelism.
 */
bool lh_config_megatron_pad_vocabulary(const LhConfig *c, LhMegatronShape *s, GError **error);

/* How many words the tokenizer has: one that is always the same, or that of a published model. */
void lh_config_megatron_read_tokenizer(LhConfig *c, LhMegatronShape *s);
