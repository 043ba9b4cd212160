/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing of C structs as JSON objects by the tables of fields that read them.
 */
#pragma once

#include "base/json/field.h"
#include "base/json/json_writer.h"

/*
 * Writes @of as an object, its members in the order of @fields. @key is as lh_jsonw_object_begin()
 * has it. A member of which there is nothing (LH_FIELD_NO_UINT and its like, NAN, NULL) is null
 * with LH_FIELD_OR_NULL, and left out otherwise. One that is neither required nor may be null is
 * left out as well if it is what a reader takes in its absence, unless LH_FIELD_STATED: as in
 * @usual, a struct like @of with the presets (NULL: zero); and so is an object of which all members
 * are.
 */
void lh_json_encode(LhJsonWriter *w, const char *key, const LhField *fields, const void *of,
                    const void *usual);

/* The same, members alone: into the object that is open. */
void lh_json_encode_members(LhJsonWriter *w, const LhField *fields, const void *of,
                            const void *usual);

/* One member. */
void lh_json_encode_member(LhJsonWriter *w, const LhField *field, const void *of,
                           const void *usual);

/* The @members, of LhFieldMember, of the open object. */
void lh_json_encode_list(LhJsonWriter *w, const GArray *members);

/* Sets what may be null or left out of the struct @of to nothing. */
void lh_json_set_none(const LhField *fields, void *of);

/* Whether there is nothing at @at, where @field has its value. */
bool lh_json_is_none(const LhField *field, const void *at);

/*
 * A document too large for memory, most of which is the array that the last of @fields is (ARRAY or
 * LATER): opens @of's object, writes its other members, and opens the array. Its elements go into
 * it one by one (lh_json_encode() with the key NULL); lh_json_encode_close() closes both.
 */
void lh_json_encode_open(LhJsonWriter *w, const char *key, const LhField *fields, const void *of,
                         const void *usual);
void lh_json_encode_close(LhJsonWriter *w);

/* Appends a whole document to @out: @of's object. */
void lh_json_encode_text(const LhField *fields, const void *of, GString *out);

/* The same on one line, without its end. Caller frees. */
char *lh_json_encode_line(const LhField *fields, const void *of);
