/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading PTX: words, symbols and operands. ptx_parse.c reads modules, variables and the statements
 * of kernels; ptx_decode.c decodes instructions.
 */
#pragma once

#include "ptx_private.h"

#include <glib.h>

typedef struct {
    const char *at;
    uint32_t length;
} ptx_word;

enum ptx_token { PTX_TOKEN_END, PTX_TOKEN_WORD, PTX_TOKEN_STRING, PTX_TOKEN_SIGN };

enum ptx_symbol_kind {
    PTX_SYMBOL_REGISTER, /* or a range of them: %r<12> */
    PTX_SYMBOL_ADDRESS,
    PTX_SYMBOL_SHARED /* at module scope: placed in a kernel on first use */
};

typedef struct {
    ptx_word name;
    uint8_t kind, space;
    uint8_t width;  /* bytes per lane of a register, 0: a predicate */
    bool dynamic;   /* shared memory whose size is given by the launch */
    bool placed;    /* PTX_SYMBOL_SHARED */
    uint32_t count; /* registers in a range; 0: the name itself */
    uint32_t base;  /* the register's offset */
    uint32_t align; /* PTX_SYMBOL_SHARED */
    uint64_t value, bytes;
} ptx_symbol;

enum ptx_operand_kind {
    PTX_OPERAND_REGISTER,
    PTX_OPERAND_NUMBER,
    PTX_OPERAND_FLOAT, /* a number with a point or in hexadecimal bits of a float */
    PTX_OPERAND_SPECIAL,
    PTX_OPERAND_SINK, /* _ */
    PTX_OPERAND_ADDRESS,
    PTX_OPERAND_LIST /* { ... }: `value` operands follow as its elements */
};

typedef struct {
    uint8_t kind;
    uint8_t width; /* of a register, or of an address's base; float: 4 or 8 */
    uint8_t space; /* of an address or of a symbol's value */
    bool negated;
    bool dynamic;
    bool symbol;     /* the value is a variable's address */
    bool second;     /* after a | */
    uint32_t offset; /* register, base of an address, or PTX_NONE */
    uint16_t special;
    uint64_t value;
} ptx_operand;

#define PTX_OPERANDS_MAX 40
#define PTX_WORDS_MAX 24

/* A function; its body is read again at every call. */
typedef struct {
    ptx_word name;
    const char *at; /* "(": results, if any, or parameters */
    uint32_t line;
    bool has_results, has_body, is_open;
} ptx_callee;

typedef struct {
    ptx_word name;
    uint32_t instance, at; /* the instruction */
    uint32_t line;
} ptx_label;

/* One target of a jump table. */
typedef struct {
    ptx_word name, target;
    uint32_t instance;
} ptx_table_entry;

typedef struct {
    const char *at, *end;
    uint32_t line;
    enum ptx_token token;
    ptx_word word;
    char sign;
    char *error;
    bool failed;
    const ptx_form *forms;
    ptx_module *module;
    ptx_kernel *kernel;
    GArray *symbols, *callees, *labels, *jumps, *tables;
    GArray *code, *operands, *filled;
    GArray *dynamic_code,
        *dynamic_filled; /* users of the address after static shared memory, known at the end */
    uint32_t instance, instances_count, depth;
    uint32_t carry; /* the carry register, or PTX_NONE */
    uint32_t dynamic_align;
    uint64_t local_bytes;
} ptx_parser;

/* The forms for this CPU. */
const ptx_form *ptx_forms_best(void);

void ptx_fail(ptx_parser *parser, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ptx_next(ptx_parser *parser);
bool ptx_word_is(ptx_word word, const char *text);
/* Takes the sign or the word if it is next. */
bool ptx_take_sign(ptx_parser *parser, char sign);
bool ptx_take_word(ptx_parser *parser, const char *text);
void ptx_expect_sign(ptx_parser *parser, char sign);
uint64_t ptx_take_number(ptx_parser *parser);
enum ptx_type ptx_type_of(ptx_word word); /* "f32", without its point */
uint32_t ptx_type_bytes(enum ptx_type type);
ptx_symbol *ptx_symbol_find(ptx_parser *parser, ptx_word name, uint32_t *index);
uint32_t ptx_register_new(ptx_parser *parser, uint32_t width, uint32_t count);
bool ptx_number_of(ptx_word word, ptx_operand *operand);

/* ptx_decode.c: reads from the opcode to the semicolon; @guard is the predicate's register or
 * PTX_NONE. */
void ptx_decode(ptx_parser *parser, uint32_t guard, bool negated);
/* Makes this instruction jump to a label of the current function. */
void ptx_jump(ptx_parser *parser, uint32_t instruction, ptx_word label);
void ptx_inline_call(ptx_parser *parser, uint32_t guard, bool negated);
ptx_instruction *ptx_instruction_new(ptx_parser *parser, uint32_t guard, bool negated);
/* A register that holds the value in all lanes. */
uint32_t ptx_filled_register(ptx_parser *parser, uint32_t width, uint64_t value, uint16_t special,
                             bool dynamic);
