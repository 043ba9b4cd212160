/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of the keys of a Hugging Face config.json, and their reader.
 */
#pragma once

#include "model/families.h"
#include "model/huggingface.h"
#include "model/model_rules.h"

/* The value of a slot, under any of its names. */
typedef struct {
    bool stated; /* null is stated, too: a size of 0 */
    uint64_t number;
    double real;
    GArray *list;     /* of uint64_t */
    GPtrArray *words; /* of char * */
    char *word;
    char *path; /* where it was found; NULL: absent */
} LhHfValue;

typedef struct {
    const LhJson *json;
    const LhModelReading *how;
    const LhHfFamily *family;
    const char *model_type;
    const char *part; /* "" or "text_config" */
    LhHfValue values[LH_HF_SLOTS];
    LhModel *model;
    GPtrArray *paths; /* owns strings that messages borrow */
} LhHfReader;

/* "text_config.hidden_size"; borrowed from the reader. */
const char *lh_hf_path(LhHfReader *r, const char *key);

/* Decodes all keys of the family; rejects unknown ones. */
bool lh_hf_read_values(LhHfReader *r, GError **error);
void lh_hf_clear_values(LhHfReader *r);

/* The number or boolean of @slot: the file's, or the family's default. */
uint64_t lh_hf_number(const LhHfReader *r, LhHfSlot slot);

/* The path under which the file states @slot, or else the usual name. */
const char *lh_hf_slot_path(LhHfReader *r, LhHfSlot slot);
