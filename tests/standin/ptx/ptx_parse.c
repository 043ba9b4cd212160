/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the text of a module: its variables, its kernels and their declarations. Bodies are read
 * when all names of the module are known; functions are expanded at every call, so that the run
 * loop has no calls. A text that is not understood completely is rejected.
 */
#include "ptx_float.h"
#include "ptx_parser.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define DEPTH_MAX 24
#define VARIABLE_ALIGN 4096

/* ---- words ---- */

void
ptx_fail(ptx_parser *parser, const char *format, ...)
{
    va_list list;
    int length;

    if (parser->failed)
        return;
    parser->failed = true;
    length = snprintf(parser->error, 256, "PTX line %u: ", parser->line);
    va_start(list, format);
    vsnprintf(parser->error + length, 256 - (size_t)length, format, list);
    va_end(list);
    parser->token = PTX_TOKEN_END;
    parser->at = parser->end;
}

static bool
is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static void
skip_space(ptx_parser *parser)
{
    while (parser->at < parser->end) {
        const char *at = parser->at;
        const size_t left = (size_t)(parser->end - at);

        if (*at == '\n')
            parser->line++;
        if (isspace((unsigned char)*at)) {
            parser->at++;
        } else if (left >= 2 && at[0] == '/' && at[1] == '/') {
            const char *line_end = memchr(at, '\n', left);

            parser->at = line_end != NULL ? line_end : parser->end;
        } else if (left >= 2 && at[0] == '/' && at[1] == '*') {
            for (parser->at += 2; parser->at < parser->end; parser->at++) {
                parser->line += *parser->at == '\n';
                if (parser->at[0] == '*' && parser->end - parser->at >= 2 && parser->at[1] == '/')
                    break;
            }
            parser->at = parser->end - parser->at >= 2 ? parser->at + 2 : parser->end;
        } else {
            return;
        }
    }
}

static void
take_string(ptx_parser *parser)
{
    const char *close = memchr(parser->at + 1, '"', (size_t)(parser->end - parser->at - 1));

    if (close == NULL) {
        ptx_fail(parser, "a string does not end");
        return;
    }
    parser->token = PTX_TOKEN_STRING;
    parser->word = (ptx_word){ parser->at + 1, (uint32_t)(close - parser->at - 1) };
    parser->at = close + 1;
}

void
ptx_next(ptx_parser *parser)
{
    const char *start;

    skip_space(parser);
    start = parser->at;
    if (parser->failed || start == parser->end) {
        parser->token = PTX_TOKEN_END;
        return;
    }
    if (*start == '"') {
        take_string(parser);
        return;
    }
    if (!is_word(*start)) {
        parser->token = PTX_TOKEN_SIGN;
        parser->sign = *start;
        parser->at++;
        return;
    }
    while (parser->at < parser->end) {
        const size_t left = (size_t)(parser->end - parser->at);

        if (*start == '.' && *parser->at == '.' && parser->at > start)
            break; /* .reg.b32 is two words; ld.global is one */
        if (is_word(*parser->at))
            parser->at++;
        else if (left >= 2 && parser->at[0] == ':' && parser->at[1] == ':')
            parser->at += 2;
        else
            break;
    }
    parser->token = PTX_TOKEN_WORD;
    parser->word = (ptx_word){ start, (uint32_t)(parser->at - start) };
    if (parser->word.length > 4096)
        ptx_fail(parser, "a name is too long");
}

bool
ptx_word_is(ptx_word word, const char *text)
{
    return strlen(text) == word.length && memcmp(word.at, text, word.length) == 0;
}

bool
ptx_take_sign(ptx_parser *parser, char sign)
{
    if (parser->token != PTX_TOKEN_SIGN || parser->sign != sign)
        return false;
    ptx_next(parser);
    return true;
}

bool
ptx_take_word(ptx_parser *parser, const char *text)
{
    if (parser->token != PTX_TOKEN_WORD || !ptx_word_is(parser->word, text))
        return false;
    ptx_next(parser);
    return true;
}

void
ptx_expect_sign(ptx_parser *parser, char sign)
{
    if (!ptx_take_sign(parser, sign))
        ptx_fail(parser, "expected '%c'", sign);
}

static ptx_word
expect_word(ptx_parser *parser)
{
    const ptx_word word = parser->word;

    if (parser->token != PTX_TOKEN_WORD) {
        ptx_fail(parser, "expected a name");
        return (ptx_word){ "", 0 };
    }
    ptx_next(parser);
    return word;
}

/* Floats: bits as 0f3F800000 and 0d3FF0000000000000, or decimal such as 1.5. */
static bool
float_of(const char *text, size_t length, ptx_operand *operand)
{
    char *end;

    operand->kind = PTX_OPERAND_FLOAT;
    if (strchr(text, '.') == NULL) {
        operand->width = text[1] == 'f' || text[1] == 'F' ? 4 : 8;
        operand->value = g_ascii_strtoull(text + 2, &end, 16);
        return *end == 0 && isxdigit((unsigned char)text[2]) && length == 2u + 2 * operand->width;
    }
    operand->width = 8;
    operand->value = ptx_bits_of_double(g_ascii_strtod(text, &end));
    return *end == 0;
}

/* Numbers as PTX writes them: 12, 0x1f, 017, 0b101, 12U, 0f3F800000, 0d3FF0000000000000, 1.5. */
bool
ptx_number_of(ptx_word word, ptx_operand *operand)
{
    char text[64], *end;
    const char *digits = text;
    guint base = 10;

    if (word.length == 0 || word.length >= sizeof(text) || !isdigit((unsigned char)word.at[0]))
        return false;
    memcpy(text, word.at, word.length);
    text[word.length] = 0;
    *operand = (ptx_operand){ .kind = PTX_OPERAND_NUMBER, .offset = PTX_NONE };
    if (strchr(text, '.') != NULL ||
        (text[0] == '0' && text[1] != 0 && strchr("fFdD", text[1]) != NULL))
        return float_of(text, word.length, operand);
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        digits = text + 2;
    } else if (text[0] == '0' && (text[1] == 'b' || text[1] == 'B')) {
        base = 2;
        digits = text + 2;
    } else if (text[0] == '0') {
        base = 8;
    }
    if (!isxdigit((unsigned char)*digits))
        return false;
    operand->value = g_ascii_strtoull(digits, &end, base);
    return *end == 0 || (*end == 'U' && end[1] == 0);
}

uint64_t
ptx_take_number(ptx_parser *parser)
{
    ptx_operand number = { 0 };

    if (parser->token != PTX_TOKEN_WORD || !ptx_number_of(parser->word, &number) ||
        number.kind != PTX_OPERAND_NUMBER) {
        ptx_fail(parser, "expected a number");
        return 0;
    }
    ptx_next(parser);
    return number.value;
}

/* ---- types and names ---- */

static const struct {
    const char *name;
    uint8_t bytes;
} types[PTX_TYPES_COUNT] = {
    [PTX_NO_TYPE] = { "", 0 },    [PTX_PRED] = { "pred", 0 },     [PTX_B8] = { "b8", 1 },
    [PTX_B16] = { "b16", 2 },     [PTX_B32] = { "b32", 4 },       [PTX_B64] = { "b64", 8 },
    [PTX_U8] = { "u8", 1 },       [PTX_U16] = { "u16", 2 },       [PTX_U32] = { "u32", 4 },
    [PTX_U64] = { "u64", 8 },     [PTX_S8] = { "s8", 1 },         [PTX_S16] = { "s16", 2 },
    [PTX_S32] = { "s32", 4 },     [PTX_S64] = { "s64", 8 },       [PTX_F16] = { "f16", 2 },
    [PTX_BF16] = { "bf16", 2 },   [PTX_F32] = { "f32", 4 },       [PTX_F64] = { "f64", 8 },
    [PTX_F16X2] = { "f16x2", 4 }, [PTX_BF16X2] = { "bf16x2", 4 }, [PTX_TF32] = { "tf32", 4 },
    [PTX_F32X2] = { "f32x2", 8 },
};

enum ptx_type
ptx_type_of(ptx_word word)
{
    for (uint32_t i = 1; i < PTX_TYPES_COUNT; i++)
        if (ptx_word_is(word, types[i].name))
            return (enum ptx_type)i;
    return PTX_NO_TYPE;
}

uint32_t
ptx_type_bytes(enum ptx_type type)
{
    return types[type].bytes;
}

/* ".f32" */
static enum ptx_type
take_type(ptx_parser *parser)
{
    enum ptx_type type = PTX_NO_TYPE;

    if (parser->token == PTX_TOKEN_WORD && parser->word.length > 1 && parser->word.at[0] == '.')
        type = ptx_type_of((ptx_word){ parser->word.at + 1, parser->word.length - 1 });
    if (type == PTX_NO_TYPE)
        ptx_fail(parser, "unknown type \"%.*s\"",
                 parser->token == PTX_TOKEN_WORD ? (int)MIN(parser->word.length, 60) : 0,
                 parser->word.at);
    else
        ptx_next(parser);
    return type;
}

static bool
same_word(ptx_word a, ptx_word b)
{
    return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

/* Looks a name up from the innermost scope outwards. @index: of a register in a range. */
ptx_symbol *
ptx_symbol_find(ptx_parser *parser, ptx_word name, uint32_t *index)
{
    uint32_t digits = 0;
    uint64_t number = 0;

    while (digits < name.length && isdigit((unsigned char)name.at[name.length - digits - 1]))
        digits++;
    for (uint32_t i = name.length - digits; i < name.length && digits < 10; i++)
        number = 10 * number + (uint64_t)(name.at[i] - '0');
    for (guint i = parser->symbols->len; i-- > 0;) {
        ptx_symbol *symbol = &g_array_index(parser->symbols, ptx_symbol, i);

        if (symbol->count == 0 && same_word(symbol->name, name)) {
            *index = 0;
            return symbol;
        }
        if (symbol->count > 0 && digits > 0 && digits < 10 && number < symbol->count &&
            symbol->name.length + digits == name.length &&
            memcmp(symbol->name.at, name.at, symbol->name.length) == 0 &&
            (digits == 1 || name.at[symbol->name.length] != '0')) {
            *index = (uint32_t)number;
            return symbol;
        }
    }
    return NULL;
}

static ptx_symbol *
symbol_new(ptx_parser *parser, ptx_word name, enum ptx_symbol_kind kind)
{
    ptx_symbol symbol = { .name = name, .kind = (uint8_t)kind };

    g_array_append_val(parser->symbols, symbol);
    return &g_array_index(parser->symbols, ptx_symbol, parser->symbols->len - 1);
}

/* Allocates @count consecutive registers; returns the first's offset. */
uint32_t
ptx_register_new(ptx_parser *parser, uint32_t width, uint32_t count)
{
    ptx_kernel *kernel = parser->kernel;
    const uint64_t stride = width == 0 ? sizeof(uint32_t) : (uint64_t)width * PTX_LANES;
    const uint64_t align = width == 0 ? sizeof(uint32_t) : 64;
    const uint64_t base = (kernel->registers_bytes + align - 1) / align * align;

    if (base + stride * count > PTX_REGISTERS_BYTES_MAX) {
        ptx_fail(parser, "too many registers");
        return 0;
    }
    kernel->registers_bytes = (uint32_t)(base + stride * count);
    return (uint32_t)base;
}

/* After ".reg": .b32 %r<12>, or .pred p, q */
static void
declare_registers(ptx_parser *parser)
{
    const enum ptx_type type = take_type(parser);
    const uint32_t width = ptx_type_bytes(type);

    if (width == 1 || (width == 0 && type != PTX_PRED)) {
        ptx_fail(parser, "registers of a type that is not known here");
        return;
    }
    do {
        const ptx_word name = expect_word(parser);
        ptx_symbol *symbol = symbol_new(parser, name, PTX_SYMBOL_REGISTER);
        uint64_t count = 0;

        if (ptx_take_sign(parser, '<')) {
            count = ptx_take_number(parser);
            ptx_expect_sign(parser, '>');
            if (count == 0 || count > PTX_REGISTERS_BYTES_MAX)
                ptx_fail(parser, "a range of no registers, or of too many");
        }
        if (parser->failed)
            return;
        symbol->width = (uint8_t)width;
        symbol->count = (uint32_t)count;
        symbol->base = ptx_register_new(parser, width, count == 0 ? 1 : (uint32_t)count);
    } while (ptx_take_sign(parser, ','));
    ptx_expect_sign(parser, ';');
}

/* ---- variables ---- */

typedef struct {
    enum ptx_type type;
    uint32_t align;
    ptx_word name;
    uint64_t bytes;
    bool open; /* name[] */
} Declared;

/* .align 4 .b8 name[2][8]: from after the space to after the dimensions. */
static Declared
take_declared(ptx_parser *parser)
{
    Declared declared = { 0 };
    uint64_t vector = 1, count;

    if (ptx_take_word(parser, ".align"))
        declared.align = (uint32_t)ptx_take_number(parser);
    if (ptx_take_word(parser, ".v2"))
        vector = 2;
    else if (ptx_take_word(parser, ".v4"))
        vector = 4;
    declared.type = take_type(parser);
    declared.bytes = ptx_type_bytes(declared.type) * vector;
    /* .ptr .global .align 16: the target of a pointer parameter */
    if (ptx_take_word(parser, ".ptr")) {
        if (!ptx_take_word(parser, ".global") && !ptx_take_word(parser, ".shared") &&
            !ptx_take_word(parser, ".const"))
            (void)ptx_take_word(parser, ".local");
        if (ptx_take_word(parser, ".align"))
            (void)ptx_take_number(parser);
    }
    if (declared.align == 0)
        declared.align = (uint32_t)declared.bytes;
    if (declared.align == 0 || declared.align > 4096 ||
        (declared.align & (declared.align - 1)) != 0)
        ptx_fail(parser, "an alignment that is no power of two up to 4096");
    declared.name = expect_word(parser);
    while (ptx_take_sign(parser, '[')) {
        if (ptx_take_sign(parser, ']')) {
            declared.open = true;
            continue;
        }
        count = ptx_take_number(parser);
        declared.bytes *= MIN(count, PTX_VARIABLE_BYTES_MAX);
        if (declared.bytes > PTX_VARIABLE_BYTES_MAX)
            ptx_fail(parser, "a variable is too large");
        ptx_expect_sign(parser, ']');
    }
    if (parser->failed)
        declared.align = 1;
    return declared;
}

static uint64_t
round_up(uint64_t x, uint64_t align)
{
    return (x + align - 1) / align * align;
}

/* A number of an initialiser as bits of its type, or the address of a variable. */
static uint64_t
initial_value(ptx_parser *parser, enum ptx_type type)
{
    const bool negative = ptx_take_sign(parser, '-');
    ptx_operand number;
    uint32_t index;
    ptx_symbol *symbol;
    uint64_t value;
    bool generic;

    if (parser->token == PTX_TOKEN_WORD && ptx_number_of(parser->word, &number)) {
        ptx_next(parser);
        if (number.kind == PTX_OPERAND_FLOAT && number.width == 8 && type == PTX_F32)
            number.value = ptx_bits_of((float)ptx_double_of(number.value));
        if (!negative)
            return number.value;
        if (number.kind == PTX_OPERAND_FLOAT)
            return number.value ^ UINT64_C(1) << (type == PTX_F64 ? 63 : 31);
        return 0 - number.value;
    }
    generic = ptx_take_word(parser, "generic");
    if (generic)
        ptx_expect_sign(parser, '(');
    symbol = ptx_symbol_find(parser, expect_word(parser), &index);
    if (generic)
        ptx_expect_sign(parser, ')');
    if (symbol == NULL || symbol->kind != PTX_SYMBOL_ADDRESS || negative ||
        ptx_type_bytes(type) != 8) {
        ptx_fail(parser, "an initialiser that is not known here");
        return 0;
    }
    value = symbol->value;
    if (ptx_take_sign(parser, '+'))
        value += ptx_take_number(parser);
    return value;
}

static void
initialise(ptx_parser *parser, const Declared *declared, unsigned char *data, uint64_t *at)
{
    const uint32_t bytes = ptx_type_bytes(declared->type);
    uint64_t value;

    if (ptx_take_sign(parser, '{')) {
        if (++parser->depth > DEPTH_MAX) {
            ptx_fail(parser, "braces too deep");
            return;
        }
        do
            initialise(parser, declared, data, at);
        while (ptx_take_sign(parser, ','));
        ptx_expect_sign(parser, '}');
        parser->depth--;
        return;
    }
    value = initial_value(parser, declared->type);
    if (parser->failed)
        return;
    if (*at + bytes > declared->bytes) {
        ptx_fail(parser, "more initial values than the variable has room for");
        return;
    }
    memcpy(data + *at, &value, bytes);
    *at += bytes;
}

/* A .global or .const variable of the module. */
static void
declare_variable(ptx_parser *parser, bool external, bool constant)
{
    do {
        const Declared declared = take_declared(parser);
        ptx_module *module = parser->module;
        ptx_variable_data variable = { .bytes = declared.bytes, .constant = constant };
        ptx_symbol *symbol;
        uint64_t at = 0;

        if (external || declared.open || declared.type == PTX_PRED) {
            ptx_fail(parser, "a variable of another module, or of no size");
            return;
        }
        if (parser->failed)
            return;
        variable.name = g_strndup(declared.name.at, declared.name.length);
        variable.memory = g_malloc0(declared.bytes + 2 * VARIABLE_ALIGN);
        variable.data =
            (unsigned char *)(uintptr_t)round_up((uintptr_t)variable.memory, VARIABLE_ALIGN);
        module->variables =
            g_renew(ptx_variable_data, module->variables, module->variables_count + 1);
        module->variables[module->variables_count++] = variable;
        symbol = symbol_new(parser, declared.name, PTX_SYMBOL_ADDRESS);
        symbol->space = constant ? PTX_CONST : PTX_GLOBAL;
        symbol->value = (uint64_t)(uintptr_t)variable.data;
        symbol->bytes = declared.bytes;
        if (ptx_take_sign(parser, '='))
            initialise(parser, &declared, variable.data, &at);
    } while (ptx_take_sign(parser, ','));
    ptx_expect_sign(parser, ';');
}

static void
declare_shared(ptx_parser *parser, bool external)
{
    do {
        const Declared declared = take_declared(parser);
        ptx_symbol *symbol;

        if (declared.open != external || declared.bytes > PTX_SHARED_BYTES_MAX)
            ptx_fail(parser, "shared memory of no size, or of too much");
        if (parser->failed)
            return;
        symbol = symbol_new(parser, declared.name, PTX_SYMBOL_SHARED);
        symbol->space = PTX_SHARED;
        symbol->dynamic = external;
        symbol->align = declared.align;
        symbol->bytes = declared.open ? 0 : declared.bytes;
    } while (ptx_take_sign(parser, ','));
    ptx_expect_sign(parser, ';');
}

/* Per-thread memory: local, or the parameters of a call. */
static ptx_symbol *
local_new(ptx_parser *parser, const Declared *declared, enum ptx_space space)
{
    ptx_symbol *symbol = symbol_new(parser, declared->name, PTX_SYMBOL_ADDRESS);
    const uint64_t base = round_up(parser->local_bytes, MAX(declared->align, 1));

    if (base + declared->bytes > PTX_LOCAL_BYTES_MAX) {
        ptx_fail(parser, "too much local memory");
        return symbol;
    }
    symbol->space = (uint8_t)space;
    symbol->value = base;
    symbol->bytes = declared->bytes;
    parser->local_bytes = base + declared->bytes;
    return symbol;
}

static void
declare_local(ptx_parser *parser)
{
    do {
        const Declared declared = take_declared(parser);

        if (declared.open)
            ptx_fail(parser, "local memory of no size");
        local_new(parser, &declared, PTX_LOCAL);
    } while (ptx_take_sign(parser, ','));
    ptx_expect_sign(parser, ';');
}

/* ---- statements ---- */

ptx_instruction *
ptx_instruction_new(ptx_parser *parser, uint32_t guard, bool negated)
{
    ptx_instruction in = {
        .guard = guard,
        .guard_negated = negated,
        .d = PTX_NONE,
        .e = PTX_NONE,
        .a = PTX_NONE,
        .b = PTX_NONE,
        .c = PTX_NONE,
        .f = PTX_NONE,
        .line = parser->line,
    };

    if (parser->code->len >= PTX_INSTRUCTIONS_MAX)
        ptx_fail(parser, "too many instructions");
    else
        g_array_append_val(parser->code, in);
    return &g_array_index(parser->code, ptx_instruction, parser->code->len - 1);
}

void
ptx_jump(ptx_parser *parser, uint32_t instruction, ptx_word label)
{
    const ptx_label jump = { label, parser->instance, instruction, parser->line };

    g_array_append_val(parser->jumps, jump);
}

static void
skip_statement(ptx_parser *parser)
{
    while (parser->token != PTX_TOKEN_END && !ptx_take_sign(parser, ';'))
        ptx_next(parser);
}

/* .loc and .file end with their line. */
static void
skip_line(ptx_parser *parser)
{
    const uint32_t line = parser->line;

    while (parser->token != PTX_TOKEN_END && parser->line == line)
        ptx_next(parser);
}

static void
directive(ptx_parser *parser)
{
    if (ptx_take_word(parser, ".reg"))
        declare_registers(parser);
    else if (ptx_take_word(parser, ".local"))
        declare_local(parser);
    else if (ptx_take_word(parser, ".shared"))
        declare_shared(parser, false);
    else if (ptx_take_word(parser, ".param")) {
        const Declared declared = take_declared(parser);

        local_new(parser, &declared, PTX_LOCAL);
        ptx_expect_sign(parser, ';');
    } else if (ptx_take_word(parser, ".pragma"))
        skip_statement(parser);
    else if (ptx_word_is(parser->word, ".loc") || ptx_word_is(parser->word, ".file"))
        skip_line(parser);
    else
        ptx_fail(parser, "unknown directive \"%.*s\"", (int)MIN(parser->word.length, 60),
                 parser->word.at);
}

static bool
at_label(const ptx_parser *parser)
{
    const char *at = parser->at;

    while (at < parser->end && isspace((unsigned char)*at))
        at++;
    return at < parser->end && *at == ':' && (parser->end - at < 2 || at[1] != ':');
}

/* A jump table: name: .branchtargets a, b, c; */
static bool
take_targets(ptx_parser *parser, ptx_word name)
{
    if (!ptx_take_word(parser, ".branchtargets"))
        return false;
    do {
        const ptx_word target = expect_word(parser);
        const ptx_table_entry entry = { name, target, parser->instance };

        g_array_append_val(parser->tables, entry);
    } while (ptx_take_sign(parser, ','));
    ptx_expect_sign(parser, ';');
    return true;
}

static void
label(ptx_parser *parser)
{
    const ptx_label label = { parser->word, parser->instance, parser->code->len, parser->line };

    ptx_next(parser);
    ptx_expect_sign(parser, ':');
    if (!take_targets(parser, label.name))
        g_array_append_val(parser->labels, label);
}

static void
guarded(ptx_parser *parser)
{
    const bool negated = ptx_take_sign(parser, '!');
    uint32_t index = 0;
    const ptx_symbol *symbol = NULL;

    if (parser->token == PTX_TOKEN_WORD)
        symbol = ptx_symbol_find(parser, parser->word, &index);
    if (symbol == NULL || symbol->kind != PTX_SYMBOL_REGISTER || symbol->width != 0) {
        ptx_fail(parser, "a guard that is no predicate");
        return;
    }
    ptx_next(parser);
    ptx_decode(parser, symbol->base + index * (uint32_t)sizeof(uint32_t), negated);
}

/* From after the opening brace to after the closing one. */
static void
block(ptx_parser *parser)
{
    const guint symbols = parser->symbols->len;

    if (++parser->depth > DEPTH_MAX)
        ptx_fail(parser, "braces too deep");
    while (!parser->failed && !ptx_take_sign(parser, '}')) {
        if (parser->token == PTX_TOKEN_END)
            ptx_fail(parser, "the text ends within a body");
        else if (ptx_take_sign(parser, '{'))
            block(parser);
        else if (ptx_take_sign(parser, ';'))
            continue;
        else if (ptx_take_sign(parser, '@'))
            guarded(parser);
        else if (parser->token != PTX_TOKEN_WORD)
            ptx_fail(parser, "expected a statement");
        else if (at_label(parser))
            label(parser);
        else if (parser->word.at[0] == '.')
            directive(parser);
        else
            ptx_decode(parser, PTX_NONE, false);
    }
    parser->depth--;
    g_array_set_size(parser->symbols, symbols);
}

static bool
find_label(ptx_parser *parser, ptx_word name, uint32_t instance, uint32_t *at)
{
    for (guint i = 0; i < parser->labels->len; i++) {
        const ptx_label *label = &g_array_index(parser->labels, ptx_label, i);

        if (label->instance == instance && same_word(label->name, name)) {
            *at = label->at;
            return true;
        }
    }
    return false;
}

/* An indirect jump keeps its targets in the list of operands. */
static void
resolve_table(ptx_parser *parser, const ptx_label *jump)
{
    ptx_instruction *in = &g_array_index(parser->code, ptx_instruction, jump->at);

    in->immediate = parser->operands->len;
    in->immediate2 = 0;
    for (guint i = 0; i < parser->tables->len; i++) {
        const ptx_table_entry *entry = &g_array_index(parser->tables, ptx_table_entry, i);
        uint32_t at = 0;

        if (entry->instance != jump->instance || !same_word(entry->name, jump->name))
            continue;
        if (!find_label(parser, entry->target, jump->instance, &at))
            ptx_fail(parser, "no label \"%.*s\"", (int)MIN(entry->target.length, 60),
                     entry->target.at);
        g_array_append_val(parser->operands, at);
        in->immediate2++;
    }
    if (in->immediate2 == 0)
        ptx_fail(parser, "no table of targets \"%.*s\"", (int)MIN(jump->name.length, 60),
                 jump->name.at);
}

static void
resolve_jumps(ptx_parser *parser)
{
    for (guint i = 0; i < parser->jumps->len && !parser->failed; i++) {
        const ptx_label *jump = &g_array_index(parser->jumps, ptx_label, i);
        ptx_instruction *in = &g_array_index(parser->code, ptx_instruction, jump->at);
        uint32_t at = 0;

        parser->line = jump->line;
        if (in->step == PTX_STEP_TABLE) {
            resolve_table(parser, jump);
            continue;
        }
        if (!find_label(parser, jump->name, jump->instance, &at))
            ptx_fail(parser, "no label \"%.*s\"", (int)MIN(jump->name.length, 60), jump->name.at);
        in->immediate = at;
    }
}

/* Dynamic shared memory follows static shared memory, whose size is known only now. */
static void
place_dynamic(ptx_parser *parser)
{
    ptx_kernel *kernel = parser->kernel;

    if (kernel->shared_bytes > PTX_SHARED_BYTES_MAX)
        ptx_fail(parser, "too much shared memory");
    kernel->shared_bytes = (uint32_t)round_up(kernel->shared_bytes, MAX(parser->dynamic_align, 1));
    for (guint i = 0; i < parser->dynamic_code->len; i++) {
        const uint32_t at = g_array_index(parser->dynamic_code, uint32_t, i);

        g_array_index(parser->code, ptx_instruction, at >> 1).immediate +=
            (at & 1) == 0 ? kernel->shared_bytes : 0;
        g_array_index(parser->code, ptx_instruction, at >> 1).immediate2 +=
            (at & 1) != 0 ? kernel->shared_bytes : 0;
    }
    for (guint i = 0; i < parser->dynamic_filled->len; i++)
        g_array_index(parser->filled, ptx_filled,
                      g_array_index(parser->dynamic_filled, uint32_t, i))
            .value += kernel->shared_bytes;
}

static void
clear_kernel(ptx_parser *parser)
{
    GArray *arrays[] = { parser->labels,       parser->jumps,         parser->tables,
                         parser->code,         parser->operands,      parser->filled,
                         parser->dynamic_code, parser->dynamic_filled };

    for (size_t i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_array_set_size(arrays[i], 0);
    parser->instance = parser->instances_count = parser->depth = 0;
    parser->carry = PTX_NONE;
    parser->dynamic_align = 0;
    parser->local_bytes = 0;
    for (guint i = 0; i < parser->symbols->len; i++)
        g_array_index(parser->symbols, ptx_symbol, i).placed = false;
}

static void *
copy_of(const GArray *array, size_t size)
{
    return g_memdup2(array->data, array->len * size);
}

static void
entry_params(ptx_parser *parser, ptx_kernel *kernel)
{
    if (!ptx_take_sign(parser, '(') || ptx_take_sign(parser, ')'))
        return;
    do {
        Declared declared;
        ptx_symbol *symbol;
        ptx_param param;

        if (!ptx_take_word(parser, ".param"))
            ptx_fail(parser, "expected .param");
        declared = take_declared(parser);
        if (declared.open || declared.bytes == 0)
            ptx_fail(parser, "a parameter of no size");
        if (parser->failed)
            return;
        param.offset = (uint32_t)round_up(kernel->params_bytes, declared.align);
        param.bytes = (uint32_t)declared.bytes;
        if (param.offset + declared.bytes > 32768) {
            ptx_fail(parser, "too many parameters");
            return;
        }
        kernel->params_bytes = param.offset + param.bytes;
        kernel->params = g_renew(ptx_param, kernel->params, kernel->params_count + 1);
        kernel->params[kernel->params_count++] = param;
        symbol = symbol_new(parser, declared.name, PTX_SYMBOL_ADDRESS);
        symbol->space = PTX_PARAM;
        symbol->value = param.offset;
        symbol->bytes = param.bytes;
    } while (ptx_take_sign(parser, ','));
    ptx_expect_sign(parser, ')');
}

/* .maxntid 256, 1, 1 .minnctapersm 2 ... */
static void
entry_limits(ptx_parser *parser, ptx_kernel *kernel)
{
    while (parser->token == PTX_TOKEN_WORD) {
        const bool threads =
            ptx_word_is(parser->word, ".maxntid") || ptx_word_is(parser->word, ".reqntid");
        uint64_t product = 1;

        if (ptx_take_word(parser, ".noreturn"))
            continue;
        if (!threads && !ptx_word_is(parser->word, ".minnctapersm") &&
            !ptx_word_is(parser->word, ".maxnreg") && !ptx_word_is(parser->word, ".maxnctapersm")) {
            ptx_fail(parser, "unknown directive \"%.*s\"", (int)MIN(parser->word.length, 60),
                     parser->word.at);
            return;
        }
        ptx_next(parser);
        do {
            const uint64_t number = ptx_take_number(parser);

            product = MIN(product * MIN(number, 65536), 65536);
        } while (ptx_take_sign(parser, ','));
        if (threads)
            kernel->threads_max = (uint32_t)product;
    }
}

/* After ".entry name". */
static void
read_entry(ptx_parser *parser, ptx_kernel *kernel)
{
    const guint symbols = parser->symbols->len;

    parser->kernel = kernel;
    clear_kernel(parser);
    entry_params(parser, kernel);
    entry_limits(parser, kernel);
    ptx_expect_sign(parser, '{');
    kernel->granule_shift = 2;
    if (!parser->failed)
        block(parser);
    g_array_set_size(parser->symbols, symbols);
    /* Execution past the last instruction ends there. */
    if (!parser->failed)
        ptx_instruction_new(parser, PTX_NONE, false)->step = PTX_STEP_EXIT;
    if (!parser->failed)
        resolve_jumps(parser);
    if (!parser->failed)
        place_dynamic(parser);
    if (parser->failed)
        return;
    kernel->local_bytes = (uint32_t)round_up(parser->local_bytes, 16);
    kernel->count = parser->code->len;
    kernel->code = copy_of(parser->code, sizeof(ptx_instruction));
    kernel->operands_count = parser->operands->len;
    kernel->operands = copy_of(parser->operands, sizeof(uint32_t));
    kernel->filled_count = parser->filled->len;
    kernel->filled = copy_of(parser->filled, sizeof(ptx_filled));
    kernel->registers_bytes = (uint32_t)round_up(kernel->registers_bytes, 64);
}

/* ---- calls ---- */

typedef struct {
    ptx_word names[64];
    uint32_t count;
} Names;

static void
take_names(ptx_parser *parser, Names *names)
{
    names->count = 0;
    ptx_expect_sign(parser, '(');
    if (ptx_take_sign(parser, ')'))
        return;
    do {
        if (names->count == G_N_ELEMENTS(names->names)) {
            ptx_fail(parser, "too many parameters of a call");
            return;
        }
        names->names[names->count++] = expect_word(parser);
    } while (ptx_take_sign(parser, ','));
    ptx_expect_sign(parser, ')');
}

/* Binds the formal names of a function to memory or registers of the caller. */
static void
bind_names(ptx_parser *parser, const Names *names)
{
    uint32_t count = 0, index = 0;

    ptx_expect_sign(parser, '(');
    if (names->count > 0)
        do {
            const bool by_register = ptx_take_word(parser, ".reg");
            Declared declared;
            ptx_symbol *given, bound;

            if (!by_register && !ptx_take_word(parser, ".param"))
                ptx_fail(parser, "expected .param");
            declared = take_declared(parser);
            if (parser->failed || count == names->count)
                break;
            given = ptx_symbol_find(parser, names->names[count++], &index);
            if (given == NULL ||
                (by_register ? given->kind != PTX_SYMBOL_REGISTER ||
                                   given->width != ptx_type_bytes(declared.type)
                             : given->kind != PTX_SYMBOL_ADDRESS || given->space != PTX_LOCAL ||
                                   given->bytes < declared.bytes)) {
                ptx_fail(parser, "a parameter of a call does not fit");
                return;
            }
            bound = *given;
            bound.name = declared.name;
            bound.base += by_register ? index * MAX(4, given->width * PTX_LANES) : 0;
            bound.count = 0;
            g_array_append_val(parser->symbols, bound);
        } while (ptx_take_sign(parser, ','));
    ptx_expect_sign(parser, ')');
    if (count != names->count)
        ptx_fail(parser, "a call with a wrong number of parameters");
}

static ptx_callee *
find_callee(ptx_parser *parser, ptx_word name)
{
    for (guint i = 0; i < parser->callees->len; i++) {
        ptx_callee *callee = &g_array_index(parser->callees, ptx_callee, i);

        if (same_word(callee->name, name) && callee->has_body)
            return callee;
    }
    return NULL;
}

static bool
find_declared(ptx_parser *parser, ptx_word name)
{
    for (guint i = 0; i < parser->callees->len; i++)
        if (same_word(g_array_index(parser->callees, ptx_callee, i).name, name))
            return true;
    return false;
}

/* Reads the body of @callee here; "ret" in it jumps to its end. */
static void
read_callee(ptx_parser *parser, ptx_callee *callee, const Names *results, const Names *params)
{
    const ptx_parser saved = *parser;
    const guint symbols = parser->symbols->len;
    const ptx_word end = { "", 0 };
    ptx_label after = { end, 0, 0, 0 };

    callee->is_open = true;
    parser->at = callee->at;
    parser->line = callee->line;
    parser->instance = ++parser->instances_count;
    ptx_next(parser);
    if (callee->has_results) {
        bind_names(parser, results);
        (void)expect_word(parser); /* skips its name */
    }
    bind_names(parser, params);
    (void)ptx_take_word(parser, ".noreturn");
    ptx_expect_sign(parser, '{');
    if (!parser->failed)
        block(parser);
    after = (ptx_label){ end, parser->instance, parser->code->len, parser->line };
    g_array_append_val(parser->labels, after);
    g_array_set_size(parser->symbols, symbols);
    callee->is_open = false;
    if (parser->failed)
        return;
    parser->at = saved.at;
    parser->line = saved.line;
    parser->token = saved.token;
    parser->word = saved.word;
    parser->sign = saved.sign;
    parser->instance = saved.instance;
    parser->depth = saved.depth;
}

/* call{.uni} (results), name, (params); the text after the opcode. */
void
ptx_inline_call(ptx_parser *parser, uint32_t guard, bool negated)
{
    Names results = { .count = 0 }, params = { .count = 0 };
    ptx_callee *callee;
    ptx_word name;
    uint32_t over = 0;

    if (parser->token == PTX_TOKEN_SIGN && parser->sign == '(') {
        take_names(parser, &results);
        ptx_expect_sign(parser, ',');
    }
    name = expect_word(parser);
    if (ptx_take_sign(parser, ','))
        take_names(parser, &params);
    if (parser->token != PTX_TOKEN_SIGN || parser->sign != ';') {
        ptx_fail(parser, "a call of a kind that is not known here");
        return;
    }
    callee = find_callee(parser, name);
    if (callee == NULL && find_declared(parser, name)) { /* of CUDA's library: printf, assert */
        ptx_instruction_new(parser, guard, negated)->run = ptx_no_body;
        g_array_index(parser->code, ptx_instruction, parser->code->len - 1).step = PTX_STEP_MEMORY;
        ptx_expect_sign(parser, ';');
        return;
    }
    if (callee == NULL || callee->is_open || parser->depth > DEPTH_MAX - 2) {
        ptx_fail(parser, "\"%.*s\" %s", (int)MIN(name.length, 60), name.at,
                 callee == NULL ? "has no body here" : "calls itself, or too deep");
        return;
    }
    if (guard != PTX_NONE) { /* lanes that do not call jump over it */
        over = parser->code->len;
        ptx_instruction_new(parser, guard, !negated)->step = PTX_STEP_BRANCH;
    }
    read_callee(parser, callee, &results, &params);
    if (guard != PTX_NONE && !parser->failed)
        g_array_index(parser->code, ptx_instruction, over).immediate = parser->code->len;
    ptx_expect_sign(parser, ';');
}

/* ---- the module ---- */

/* Skips from an opening brace to after its closing one. */
static void
skip_block(ptx_parser *parser)
{
    uint32_t depth = 0;

    do {
        if (parser->token == PTX_TOKEN_SIGN && parser->sign == '{')
            depth++;
        if (parser->token == PTX_TOKEN_SIGN && parser->sign == '}')
            depth--;
        if (parser->token == PTX_TOKEN_END)
            ptx_fail(parser, "the text ends within a body");
        ptx_next(parser);
    } while (depth > 0 && !parser->failed);
}

static void
note_entry(ptx_parser *parser, GArray *entries)
{
    ptx_callee entry = { .name = expect_word(parser), .line = parser->line };

    while (parser->token == PTX_TOKEN_WORD ||
           (parser->token == PTX_TOKEN_SIGN && parser->sign != '{' && parser->sign != ';'))
        ptx_next(parser);
    if (ptx_take_sign(parser, ';')) /* a declaration only */
        return;
    skip_block(parser);
    g_array_append_val(entries, entry);
}

static void
note_callee(ptx_parser *parser)
{
    ptx_callee callee = { .line = parser->line };

    if (parser->token == PTX_TOKEN_SIGN && parser->sign == '(') {
        callee.has_results = true;
        callee.at = parser->at - 1;
        while (parser->token != PTX_TOKEN_END && !ptx_take_sign(parser, ')'))
            ptx_next(parser);
    }
    callee.name = expect_word(parser);
    if (!callee.has_results)
        callee.at = callee.name.at + callee.name.length;
    while (parser->token == PTX_TOKEN_WORD ||
           (parser->token == PTX_TOKEN_SIGN && parser->sign != '{' && parser->sign != ';'))
        ptx_next(parser);
    callee.has_body = parser->token == PTX_TOKEN_SIGN && parser->sign == '{';
    if (callee.has_body)
        skip_block(parser);
    else
        ptx_expect_sign(parser, ';');
    g_array_append_val(parser->callees, callee);
}

static void
take_target(ptx_parser *parser)
{
    const ptx_word word = expect_word(parser);

    g_snprintf(parser->module->target, sizeof(parser->module->target), "%.*s",
               (int)MIN(word.length, 15), word.at);
    while (ptx_take_sign(parser, ','))
        (void)expect_word(parser);
    if (strncmp(parser->module->target, "sm_", 3) != 0)
        ptx_fail(parser, "unknown target");
}

static void
take_version(ptx_parser *parser)
{
    const ptx_word word = expect_word(parser);
    uint32_t version = 0, digits = 0, points = 0;

    for (uint32_t i = 0; i < word.length; i++) {
        points += word.at[i] == '.';
        if (isdigit((unsigned char)word.at[i]) && ++digits < 4)
            version = 10 * version + (uint32_t)(word.at[i] - '0');
        else if (word.at[i] != '.')
            points = 2;
    }
    if (points != 1 || digits < 2)
        ptx_fail(parser, "unknown version");
    parser->module->version = version;
}

/* After .visible, .extern and the like. */
static void
module_statement(ptx_parser *parser, GArray *entries, bool external)
{
    if (ptx_take_word(parser, ".entry"))
        note_entry(parser, entries);
    else if (ptx_take_word(parser, ".func"))
        note_callee(parser);
    else if (ptx_take_word(parser, ".global"))
        declare_variable(parser, external, false);
    else if (ptx_take_word(parser, ".const"))
        declare_variable(parser, external, true);
    else if (ptx_take_word(parser, ".shared"))
        declare_shared(parser, external);
    else if (ptx_take_word(parser, ".version"))
        take_version(parser);
    else if (ptx_take_word(parser, ".target"))
        take_target(parser);
    else if (ptx_take_word(parser, ".address_size")) {
        if (ptx_take_number(parser) != 64)
            ptx_fail(parser, "addresses of other than 64 bits");
    } else if (parser->token == PTX_TOKEN_WORD && ptx_word_is(parser->word, ".file"))
        skip_line(parser);
    else if (ptx_take_word(parser, ".pragma"))
        skip_statement(parser);
    else if (ptx_take_word(parser, ".section")) {
        (void)expect_word(parser);
        skip_block(parser);
    } else
        ptx_fail(parser, "unknown directive \"%.*s\"",
                 parser->token == PTX_TOKEN_WORD ? (int)MIN(parser->word.length, 60) : 0,
                 parser->word.at);
}

static void
read_module(ptx_parser *parser)
{
    g_autoptr(GArray) entries = g_array_new(FALSE, FALSE, sizeof(ptx_callee));
    ptx_module *module = parser->module;

    ptx_next(parser);
    while (parser->token != PTX_TOKEN_END) {
        bool external = false;

        while (parser->token == PTX_TOKEN_WORD) {
            if (ptx_take_word(parser, ".extern"))
                external = true;
            else if (!ptx_take_word(parser, ".visible") && !ptx_take_word(parser, ".weak") &&
                     !ptx_take_word(parser, ".common"))
                break;
        }
        module_statement(parser, entries, external);
    }
    if (!parser->failed && (module->version == 0 || module->target[0] == 0))
        ptx_fail(parser, "no .version and .target: not PTX");
    module->kernels = g_new0(ptx_kernel *, entries->len + 1);
    for (guint i = 0; i < entries->len && !parser->failed; i++) {
        const ptx_callee *entry = &g_array_index(entries, ptx_callee, i);
        ptx_kernel *kernel = g_new0(ptx_kernel, 1);

        kernel->module = module;
        kernel->name = g_strndup(entry->name.at, entry->name.length);
        module->kernels[module->kernels_count++] = kernel;
        parser->at = entry->name.at + entry->name.length;
        parser->line = entry->line;
        ptx_next(parser);
        read_entry(parser, kernel);
    }
}

ptx_module *
ptx_module_new(const char *text, size_t length, char error[256])
{
    ptx_parser parser = { .at = text, .end = text + length, .line = 1, .error = error };
    GArray **arrays[] = { &parser.symbols,       &parser.callees, &parser.labels,
                          &parser.jumps,         &parser.tables,  &parser.code,
                          &parser.operands,      &parser.filled,  &parser.dynamic_code,
                          &parser.dynamic_filled };
    const size_t sizes[] = { sizeof(ptx_symbol), sizeof(ptx_callee),      sizeof(ptx_label),
                             sizeof(ptx_label),  sizeof(ptx_table_entry), sizeof(ptx_instruction),
                             sizeof(uint32_t),   sizeof(ptx_filled),      sizeof(uint32_t),
                             sizeof(uint32_t) };

    error[0] = 0;
    parser.forms = ptx_forms_best();
    parser.module = g_new0(ptx_module, 1);
    for (size_t i = 0; i < G_N_ELEMENTS(arrays); i++)
        *arrays[i] = g_array_new(FALSE, FALSE, (guint)sizes[i]);
    /* The text of a fat binary ends in a zero. */
    while (length > 0 && parser.end[-1] == 0) {
        parser.end--;
        length--;
    }
    read_module(&parser);
    for (size_t i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_array_free(*arrays[i], TRUE);
    if (parser.failed) {
        ptx_module_free(parser.module);
        return NULL;
    }
    return parser.module;
}

void
ptx_module_free(ptx_module *module)
{
    if (module == NULL)
        return;
    for (uint32_t i = 0; i < module->kernels_count; i++) {
        ptx_kernel *kernel = module->kernels[i];

        g_free(kernel->name);
        g_free(kernel->params);
        g_free(kernel->code);
        g_free(kernel->operands);
        g_free(kernel->filled);
        g_free(kernel);
    }
    for (uint32_t i = 0; i < module->variables_count; i++) {
        g_free(module->variables[i].name);
        g_free(module->variables[i].memory);
    }
    g_free(module->kernels);
    g_free(module->variables);
    g_free(module);
}

/* ---- queries ---- */

const ptx_kernel *
ptx_find(const ptx_module *module, const char *name)
{
    for (uint32_t i = 0; i < module->kernels_count; i++)
        if (strcmp(module->kernels[i]->name, name) == 0)
            return module->kernels[i];
    return NULL;
}

uint32_t
ptx_kernels_count(const ptx_module *module)
{
    return module->kernels_count;
}

const ptx_kernel *
ptx_kernel_at(const ptx_module *module, uint32_t index)
{
    return index < module->kernels_count ? module->kernels[index] : NULL;
}

uint32_t
ptx_version(const ptx_module *module)
{
    return module->version;
}

const char *
ptx_target(const ptx_module *module)
{
    return module->target;
}

void *
ptx_variable(const ptx_module *module, const char *name, size_t *bytes)
{
    for (uint32_t i = 0; i < module->variables_count; i++)
        if (strcmp(module->variables[i].name, name) == 0) {
            *bytes = module->variables[i].bytes;
            return module->variables[i].data;
        }
    return NULL;
}

const char *
ptx_kernel_name(const ptx_kernel *kernel)
{
    return kernel->name;
}

uint32_t
ptx_kernel_shared_bytes(const ptx_kernel *kernel)
{
    return kernel->shared_bytes;
}

uint32_t
ptx_kernel_local_bytes(const ptx_kernel *kernel)
{
    return kernel->local_bytes;
}

uint32_t
ptx_kernel_threads_max(const ptx_kernel *kernel)
{
    return kernel->threads_max;
}

uint32_t
ptx_params_count(const ptx_kernel *kernel)
{
    return kernel->params_count;
}

uint32_t
ptx_param_offset(const ptx_kernel *kernel, uint32_t index)
{
    return index < kernel->params_count ? kernel->params[index].offset : 0;
}

uint32_t
ptx_param_bytes(const ptx_kernel *kernel, uint32_t index)
{
    return index < kernel->params_count ? kernel->params[index].bytes : 0;
}
