/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hugging Face's config.json, read as a model.
 */
#pragma once

#include "model/model.h"

/* Options of reading a Hugging Face file. */
typedef struct {
    const char *assume;       /* the model type to read it as; NULL: its own */
    const GPtrArray *ignored; /* of char *: keys to ignore; NULL: none */
} LhModelReading;

/* Fills @model (zeroed by the caller) from a Hugging Face config.json named @file in messages. */
bool lh_model_read_hf(const LhJson *json, const char *file, const LhModelReading *how,
                      LhModel *model, GError **error);
