/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding of JSON objects into C structs by tables of fields.
 */
#pragma once

#include "base/json/field.h"

typedef struct _LhJson LhJson; /* json.h */

/*
 * Decodes the root object into @out by @fields. Absent optional fields leave @out as the caller
 * preset it (presets must not own memory; strings and arrays start NULL). With @allow_unknown,
 * unknown keys are skipped (foreign formats); otherwise they are errors with a suggestion. On
 * failure everything allocated is released and the caller need not clear @out.
 */
bool lh_json_decode(const LhJson *json, const LhField *fields, void *out, bool allow_unknown,
                    GError **error);

/* As lh_json_decode, for the object at @path ("text_config"); false with no error set if absent. */
bool lh_json_decode_at(const LhJson *json, const char *path, const LhField *fields, void *out,
                       bool allow_unknown, GError **error);

/*
 * Decodes the next element of an array of the field @field (LH_FIELD_LATER or LH_FIELD_VALUES),
 * which must have one, and advances @later. @path is the path of the array, for messages. The
 * caller clears @element with lh_json_clear(field->fields, element); on failure there is nothing to
 * clear.
 */
bool lh_json_decode_next(const LhJson *json, const LhField *field, const char *path,
                         LhFieldLater *later, void *element, GError **error);

/* Frees an array of LhFieldMember. */
void lh_field_members_free(GArray *members);

/* Frees what lh_json_decode allocated inside @out (not @out itself) and zeroes those pointers. */
void lh_json_clear(const LhField *fields, void *out);

/* Frees the value of an LH_FIELD_MEMBERS field, of LhFieldMember. */
void lh_field_members_free(GArray *members);
