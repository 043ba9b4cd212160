/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes C structs as JSON objects by the same tables that decode them.
 */
#pragma once

#include "base/json/field.h"
#include "base/json/json_writer.h"

/*
 * Writes @of as an object, with members in the order of @fields. @key as for
 * lh_jsonw_object_begin(). A member without a value (LH_FIELD_NO_UINT and its like, NAN, NULL) is
 * null with LH_FIELD_OR_NULL, and otherwise left out. A member that is neither required nor
 * nullable is also left out if it has its default, unless LH_FIELD_STATED. Defaults are in @usual,
 * a struct like @of with the presets (NULL: zero); an object has its default if all its members
 * have.
 */
void lh_json_encode(LhJsonWriter *w, const char *key, const LhField *fields, const void *of,
                    const void *usual);

/* Writes the members alone, into the open object. */
void lh_json_encode_members(LhJsonWriter *w, const LhField *fields, const void *of,
                            const void *usual);

/* Writes one member. */
void lh_json_encode_member(LhJsonWriter *w, const LhField *field, const void *of,
                           const void *usual);

/* Writes @members, of LhFieldMember, into the open object. */
void lh_json_encode_list(LhJsonWriter *w, const GArray *members);

/* Sets all nullable and optional members of the struct @of to none. */
void lh_json_set_none(const LhField *fields, void *of);

/* Whether the value of @field at @at means none. */
bool lh_json_is_none(const LhField *field, const void *at);

/*
 * For a document too large for memory that consists mostly of one array, the last of @fields (ARRAY
 * or LATER): opens @of's object, writes its other members, and opens the array. Elements are
 * written one by one (lh_json_encode() with the key NULL); lh_json_encode_close() closes both.
 */
void lh_json_encode_open(LhJsonWriter *w, const char *key, const LhField *fields, const void *of,
                         const void *usual);
void lh_json_encode_close(LhJsonWriter *w);

/* Appends a whole document to @out: the object of @of. */
void lh_json_encode_text(const LhField *fields, const void *of, GString *out);

/* The same on one line, without a line end. Caller frees. */
char *lh_json_encode_line(const LhField *fields, const void *of);
