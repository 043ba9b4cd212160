/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of fields: the members of a struct that a file or a command line can set, or a file
 * contains. The same table decodes the file (json_decode.h), encodes it (json_encode.h), parses
 * options, words all errors and prints the format's JSON Schema, so these cannot disagree.
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
    LH_FIELD_INT,    /* int64_t; a JSON integer, exact over the whole range */
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
    /* LhFieldLater: an array like ARRAY, decoded and encoded one element at a time. */
    LH_FIELD_LATER,
    LH_FIELD_VALUES, /* LhFieldLater: an array of values of the first of `fields` */
    LH_FIELD_TRUTH,  /* int: false or true; below 0: unknown */
    LH_FIELD_WIDE,   /* LhWide: an exact sum, a JSON integer */
    /* Only for encoding: */
    /* uint64_t[], indexed like `choices`: an object of the counts that are not 0; none if the first
     * is LH_FIELD_NO_UINT. */
    LH_FIELD_COUNTS,
    LH_FIELD_INLINE,   /* a nested struct, whose `fields` are members of the same object */
    LH_FIELD_POINTER,  /* a pointer to a struct encoded by `fields` */
    LH_FIELD_POINTERS, /* GPtrArray * of such pointers */
    LH_FIELD_LITERAL,  /* char *, a number in JSON syntax; owned */
    LH_FIELD_ROWS,     /* an array of objects like MEMBERS, streamed by the format's writer */
    /* GArray * of LhFieldMember: an object whose members are not in a table; owned. */
    LH_FIELD_MEMBERS,
} LhFieldType;

/* The value of a UINT that means none; for INT and WIDE likewise. Also none: NULL, a CHOICE or
 * TRUTH below 0, and a DOUBLE that is not finite. */
#define LH_FIELD_NO_UINT UINT64_MAX
#define LH_FIELD_NO_INT INT64_MIN

typedef enum {
    LH_FIELD_REQUIRED = 1 << 0,
    /* JSON null counts as absent (Hugging Face writes it); with REQUIRED, none is encoded as
     * null. */
    LH_FIELD_OR_NULL = 1 << 1,
    /* STRINGS: a string alone is a list of one, and a list of one is encoded so. */
    LH_FIELD_OR_ONE = 1 << 2,
    LH_FIELD_SECONDS = 1 << 3, /* UNIT of TIME, on a command line: a number alone is seconds */
    LH_FIELD_WRITTEN = 1 << 4, /* STRING: the path of an output file */
    LH_FIELD_UPDATED = 1 << 5, /* STRING: the path of a file that is resumed if it exists */
    /* UINT, INT, WIDE, UINTS, COUNTS: exact seconds in JSON; bounds are in seconds, too. */
    LH_FIELD_PICOSECONDS = 1 << 6,
    LH_FIELD_STATED = 1 << 7, /* not required, but encoded even if it has its default */
    LH_FIELD_SHARED = 1 << 8, /* another format has this member, too, and borrows the row */
} LhFieldFlags;

/* A large array of a file, whose elements the reader decodes one after another with
 * lh_json_decode_next(). */
typedef struct {
    size_t at;      /* position of the next element in the document */
    uint32_t count; /* elements left */
    uint32_t index; /* index of the next element */
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
    const char *const *choices; /* CHOICE, COUNTS; STRING: all allowed values; NULL-terminated */
    /* LH_FIELD_OBJECT, ARRAY, LATER, VALUES; MEMBERS, for the schema: alternatives for each member;
     * NULL: anything. */
    const LhField *fields;
    size_t element_size;           /* LH_FIELD_ARRAY, LATER; VALUES: size of that field's struct */
    void (*element_init)(void *e); /* sets an element's defaults; NULL: all zero */
    /* Computes the encoded value from the struct @of: sets @value, which is zeroed and has the size
     * of the type (OBJECT: element_size). The encoder frees its contents as lh_json_clear() does.
     * NULL: the value at `offset`. */
    void (*derive)(const void *of, void *value);
    const char *description; /* one sentence, for the schema */
    /* For its value in a command's help, "FILE"; NULL: derived from the type. */
    const char *placeholder;
    /* What a STRING or STRINGS names, for completion: "files", or a list of `longhaul list`
     * ("models", in place of which a file is allowed). NULL: nothing. */
    const char *names;
    char letter;               /* short option, 'b' for -b; 0: none */
    LhOptionCategory category; /* section of help; LH_ABOUT_NOTHING: not an option */
    /* Default value as text, as lh_setting_texts() formats it, if it depends on nothing else; else
     * NULL. */
    const char *absent;
};

/* A member of MEMBERS: a field with offset 0, and its value; owned. */
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
    char *text; /* as typed on a command line, "grid 4x8"; owned; NULL: not an option */
} LhFieldMember;

/*
 * A row for encoding: @member of the struct @of under @key. @when: ALWAYS, OR_NULL (null if there
 * is none) or IF_ANY (left out if there is none). Further initialisers may follow: .description =
 * "..." and so on. SECONDS_ROW is for picoseconds, which are encoded as exact seconds.
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

/* Whether @value is within the field's bounds, in their unit. */
bool lh_field_allows(const LhField *field, double value);

/* The bounds as text: "1 to 64", "at least 1", "at most 64"; NULL without bounds. Caller frees. */
char *lh_field_bounds(const LhField *field);

/* The values that a file may have: "a number", "one of a, b". Caller frees. */
char *lh_field_expected(const LhField *field);

/* Size of a number, a choice or a flag in its struct; 0 for other fields. */
gsize lh_field_number_size(const LhField *field);

/* Whether @field of @element, an optional number or choice, has its default: then it need not be
 * written. */
bool lh_field_is_absent(const LhField *array, const LhField *field, const void *element);
