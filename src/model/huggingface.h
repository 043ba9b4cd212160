/*
 * Hugging Face's config.json, read as a model.
 */
#pragma once

#include "model/model.h"

/* Fills @model (zeroed by the caller) from a Hugging Face config.json called @file. */
bool lh_model_read_hf(const LhJson *json, const char *file, const LhModelReading *how,
                      LhModel *model, GError **error);
