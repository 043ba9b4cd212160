/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derives a model's layers, MLPs and parameters from the values of a Hugging Face config.json.
 */
#pragma once

#include "model/huggingface_values.h"

/* Sets the model's layers: kinds, windows, and which of them have experts. */
bool lh_hf_read_layers(LhHfReader *r, GError **error);

/* Sets the model's MLPs and its other parameters. */
bool lh_hf_read_mlp(LhHfReader *r, GError **error);
void lh_hf_read_weights(LhHfReader *r);
