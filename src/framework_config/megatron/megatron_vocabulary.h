/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Size of the vocabulary.
 */
#pragma once

#include "framework_config/megatron/megatron_shape.h"

/* Pads the vocabulary to a multiple that tensor parallelism also divides: the rows of the
 * embedding. */
bool lh_config_megatron_pad_vocabulary(const LhConfig *c, LhMegatronShape *s, GError **error);

/* Determines the tokenizer's vocabulary size: a fixed one, or that of a published model. */
void lh_config_megatron_read_tokenizer(LhConfig *c, LhMegatronShape *s);
