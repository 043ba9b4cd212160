/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading files of models: longhaul's own, and Hugging Face's config.json.
 */
#pragma once

#include "model/huggingface.h"

/*
 * Reads @name: a word (a file of models/) or a path. A file with "schema": "longhaul.model/1" is
 * read strictly; any other is taken for a Hugging Face config.json, of a family that families.c
 * has, all of whose keys are known. A folder stands for the config.json in it. Impossible shapes
 * are LH_ERROR_INPUT with file, line and field. @how may be NULL.
 */
LhModel *lh_model_load_as(const char *name, const LhModelReading *how, GError **error);
LhModel *lh_model_load(const char *name, GError **error);
LhModel *lh_model_parse(const char *file, const char *text, gsize length, GError **error);

/* Whether @name is a folder with a config.json rather than a file; names of models go first. */
bool lh_model_is_folder(const char *name);
