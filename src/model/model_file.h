/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads model files: longhaul's own, and Hugging Face's config.json.
 */
#pragma once

#include "model/huggingface.h"

/*
 * Reads @name: a name (a file of models/) or a path. A file with "schema": "longhaul.model/1" is
 * read strictly; any other as a Hugging Face config.json of a family in families.c, all of whose
 * keys must be known. A folder stands for its config.json. Impossible shapes are LH_ERROR_INPUT
 * with file, line and field. @how may be NULL.
 */
LhModel *lh_model_load_as(const char *name, const LhModelReading *how, GError **error);
LhModel *lh_model_load(const char *name, GError **error);
LhModel *lh_model_parse(const char *file, const char *text, gsize length, GError **error);

/* Whether @name is a folder with a config.json; names of models take precedence. */
bool lh_model_is_folder(const char *name);
