/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of fields: what a struct takes from a file or a command line, and writes to one. The same
 * table decodes the file (json_decode.h), writes it (json_encode.h), reads options, words every
 * error and prints the format's JSON Schema, so these cannot disagree.
 */
#pragma once

#include "base/json/option_category.h"
#include "base/units.h"

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum {
    LH_FIELD_STRING, /* char *, owned by the struct */
    LH_FIELD_UINT,   /* uint64_t; a JSON integer, exact over the whole range */
    LH_FIELD_INT,    /* int64_t; likewise */
    LH_FIELD_DOUBLE, /* double */
    LH_FIELD_BOOL,   /* bool */
    LH_FIELD_UNIT,   /* uint64_t, double or LhTime by `unit`; a string with a unit, or for COUNT and
                        BYTES also a plain JSON integer */
    LH_FIELD_CHOICE, /* int: index into `choices` */
    LH_FIELD_OBJECT, /* the nested struct itself, decoded by `fields` */
    LH_FIELD_ARRAY,  /* GArray * of `element_size` structs decoded by `fields`; owned */
    LH_FIELD_UINTS,  /* GArray * of uint64_t; owned */
    LH_FIELD_DOUBLES, /* GArray * of double; owned */
    LH_FIELD_STRINGS, /* GPtrArray * of char *, owned */
    LH_FIELD_LATER,   /* LhFieldLater: an array like ARRAY that is decoded, and encoded, one element
                         at a time */
    LH_FIELD_VALUES,  /* likewise, of values that the first of `fields` takes */
    LH_FIELD_TRUTH,   /* int: false or true; below 0: it is not known */
    LH_FIELD_WIDE,    /* LhWide; an exact sum, a JSON integer */
    /* These are written, and not read: */
    LH_FIELD_COUNTS,   /* uint64_t[], of each of `choices`: an object of those that are not 0; the
                          first is LH_FIELD_NO_UINT: nothing */
    LH_FIELD_INLINE,   /* a nested struct, whose `fields` are members of the same object */
    LH_FIELD_POINTER,  /* a pointer to a struct that `fields` write */
    LH_FIELD_POINTERS, /* GPtrArray * of such pointers */
    LH_FIELD_LITERAL,  /* char *, a number as JSON writes it; owned */
    LH_FIELD_ROWS,     /* an array of objects like MEMBERS, which the format's writer streams */
    LH_FIELD_MEMBERS, /* GArray * of LhFieldMember: an object whose members no table lists; owned */
} LhFieldType;

/* What an UINT, or an INT or WIDE, holds of which there is nothing; likewise NULL, a CHOICE or
 * TRUTH below 0 and a DOUBLE that is not finite. */
#define LH_FIELD_NO_UINT UINT64_MAX
#define LH_FIELD_NO_INT INT64_MIN

typedef enum {
    LH_FIELD_REQUIRED = 1 << 0,
    LH_FIELD_OR_NULL = 1 << 1, /* JSON null counts as absent (Hugging Face writes it); with REQUIRED
                                  it is written where there is nothing */
    LH_FIELD_OR_ONE = 1 << 2,  /* STRINGS: a string alone is a list of one, and one is written so */
    LH_FIELD_SECONDS = 1 << 3, /* UNIT of TIME, on a command line: a number alone is seconds */
    LH_FIELD_WRITTEN = 1 << 4, /* STRING: the path of a file that is written */
    LH_FIELD_UPDATED = 1 << 5, /* likewise, and gone on with, if it is there */
    LH_FIELD_PICOSECONDS = 1 << 6, /* UINT, INT, WIDE, UINTS, COUNTS: in JSON, exact seconds, in
                                      which bounds are, too */
    LH_FIELD_STATED = 1 << 7, /* not required, but written even as it is taken to be if absent */
    LH_FIELD_SHARED = 1 << 8, /* another format has this member, too, and borrows the row */
} LhFieldFlags;

/* An array of a file, most of which is its elements: the reader decodes them one after another with
 * lh_json_decode_next(). */
typedef struct {
    size_t at;      /* where the next element stands in the document */
    uint32_t count; /* of elements that are left */
    uint32_t index; /* of the next one */
} LhFieldLater;

/* One field of a JSON object. A table ends with a zero entry ({ .name = NULL }). */
typedef struct _LhField LhField;
struct _LhField {
    const char *name;
    LhFieldType type;
    size_t offset; /* of the value in the struct being filled */
    unsigned flags;
    LhUnit unit;                /* LH_FIELD_UNIT */
    double min;                 /* inclusive bounds for numbers and units, in base units (TIME: */
    double max;                 /* seconds); STRING: lengths; arrays: element counts. Both 0: none;
                                   max below min: no upper bound */
    const char *const *choices; /* CHOICE, COUNTS; STRING: all it can be; NULL-terminated */
    const LhField *fields;      /* LH_FIELD_OBJECT, ARRAY, LATER, VALUES; MEMBERS, for the schema:
                                   what each of them may be; NULL: anything */
    size_t element_size;        /* LH_FIELD_ARRAY, LATER; VALUES: of the struct of that field */
    void (*element_init)(void *e); /* likewise: sets an element's defaults; NULL: all zero */
    /* What is written follows from the struct @of: sets @value, which is zero and has the size of
     * the type's (OBJECT: element_size). The writer frees what is in it as lh_json_clear() does.
     * NULL: the value at `offset`. */
    void (*derive)(const void *of, void *value);
    const char *description; /* one sentence, for the schema */
    const char *placeholder; /* of its value in a command's help, "FILE"; NULL: by its type */
    /* What a STRING or STRINGS names, for completion: "files", or as `longhaul list` calls it
     * ("models", which files stand for, too). NULL: nothing. */
    const char *names;
    char letter;               /* of its short form on a command line, 'b' for -b; 0: none */
    LhOptionCategory category; /* where help has it; LH_ABOUT_NOTHING: it is no option */
    /* What it is if it is not given, as lh_setting_texts() has it, where that depends on nothing
     * else. NULL: nothing, or it does. */
    const char *absent;
};

/* A member of MEMBERS: a field, whose offset is 0, and what it has; owned. */
typedef struct {
    LhField field;
    union {
        bool flag;
        uint64_t number;
        double real;
        char *string;
        GPtrArray *strings;
        GArray *uints;
    } value;
    char *text; /* as it is typed, "grid 4x8"; owned; NULL: it never is */
} LhFieldMember;

/*
 * A row of a table that is written: @member of the struct @of as @key. @when: ALWAYS, OR_NULL (null
 * where there is nothing) or IF_ANY (left out then). Behind it, what else the row has: .description
 * = "..." and so on. A SECONDS_ROW is one of picoseconds, which are written as exact seconds.
 */
#define LH_FIELD_ROW(kind, of, member, key, when, ...)                                             \
    {                                                                                              \
        .name = key, .type = LH_FIELD_##kind, .offset = offsetof(of, member),                      \
        .flags = LH_FIELD_WHEN_##when, __VA_ARGS__                                                 \
    }
#define LH_FIELD_SECONDS_ROW(kind, of, member, key, when, ...)                                     \
    {                                                                                              \
        .name = key, .type = LH_FIELD_##kind, .offset = offsetof(of, member),                      \
        .flags = LH_FIELD_WHEN_##when | LH_FIELD_PICOSECONDS, __VA_ARGS__                          \
    }
#define LH_FIELD_WHEN_ALWAYS LH_FIELD_REQUIRED
#define LH_FIELD_WHEN_OR_NULL (LH_FIELD_REQUIRED | LH_FIELD_OR_NULL)
#define LH_FIELD_WHEN_IF_ANY 0

/* Whether @value is within the field's bounds, in the unit of these. */
bool lh_field_allows(const LhField *field, double value);

/* The bounds as people read them: "1 to 64", "at least 1", "at most 64"; NULL without bounds.
 * Caller frees. */
char *lh_field_bounds(const LhField *field);

/* What a field of this type takes from a file: "a number", "one of a, b". Caller frees. */
char *lh_field_expected(const LhField *field);

/* The size of a number, a choice or a flag in its struct; 0: the field is none of these. */
gsize lh_field_number_size(const LhField *field);

/* Whether @field of @element, a number or choice that may be left out, is as if it had been: then
 * nothing need be written of it. */
bool lh_field_is_absent(const LhField *array, const LhField *field, const void *element);
