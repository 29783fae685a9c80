" Parley's pages: servers and tools, the log, a project's servers. The host writes their lines.
if exists('b:current_syntax')
  finish
endif

syntax include @parleyJson syntax/json.vim
unlet! b:current_syntax
syntax region parleyJson matchgroup=parleyFence start=/^\s*```json$/ end=/^\s*```$/ keepend contains=@parleyJson
syntax region parleyText matchgroup=parleyFence start=/^\s*```$/ end=/^\s*```$/ keepend

syntax region parleyText matchgroup=parleyFence start=/^```text$/ end=/^```$/ keepend
syntax region parleyDiff matchgroup=parleyFence start=/^```diff$/ end=/^```$/ keepend contains=@parleyRows
syntax cluster parleyRows contains=ParleyAdded,ParleyRemoved,ParleyHint
syntax match ParleyAdded /^  +.*/ contained
syntax match ParleyRemoved /^  -.*/ contained
syntax match ParleyHint /^  \%(@@\|\\\| No newline\).*/ contained

syntax match ParleyPageTitle /^# .*/
syntax match ParleyPageHeading /^## .*/ contains=@parleyState
syntax match parleyWrong /^\%(Error: \|! \|- ! \|- receives your variables \|- uses files from the project\).*/
syntax match ParleyPageLabel /^\s*\%(Title\|Annotations\|Requests\|stderr, \d\+ lines\?\):/

" Servers and tools: the keys, the used part of each, and its state
syntax cluster parleyState contains=parleyOn,parleyPartly,parleyOff,parleyReady,parleyStarting,parleyStopped,parleyFailed
syntax match parleyKeys /^\%(x: on or off\|<CR>: diff\).*/ contains=ParleyPageKey
syntax match ParleyPageKey /\%(^\|  \)\@<=\%(<\w\+>\|\a\{1,2}\)\ze: / contained
syntax match parleyLine /^- \[.\] \S\+/ contains=@parleyState,parleyName
syntax match parleyName /\%(\] \)\@<=\S\+/ contained
syntax match parleyOn /\[x\]/ contained
syntax match parleyPartly /\[\~\]/ contained
syntax match parleyOff /\[[ -]\]/ contained
syntax match parleyReady /\%(: \)\@<=ready\>/ contained
syntax match parleyStarting /\%(: \)\@<=starting\>/ contained
syntax match parleyStopped /\%(: \)\@<=\%(stopped\|switched off\)\>[^,]*/ contained
syntax match parleyFailed /\%(: \)\@<=failed\>/ contained

" The log: time, event, tool or model, and outcome
syntax match parleyLogTime /^\d\d:\d\d:\d\d\ze  / nextgroup=parleyLogKind
syntax match parleyLogKind /\s\+\S\+/ contained nextgroup=parleyLogTool
syntax match parleyLogTool /\s\+\S\+/ contained nextgroup=parleyLogEnd
syntax match parleyLogEnd /.*/ contained contains=parleyLogGood,parleyLogBad
syntax match parleyLogGood /\<\%(ok\|complete\)\ze,/ contained
syntax match parleyLogBad /\<\%(error\|refused\|cut\)\ze,/ contained

for s:link in [
      \ 'ParleyPageTitle Title', 'ParleyPageHeading Title', 'ParleyPageKey Special', 'ParleyPageLabel Identifier',
      \ 'ParleyPageGood DiagnosticOk', 'ParleyPageUnsure DiagnosticWarn', 'ParleyPageBad DiagnosticError',
      \ 'ParleyPageDim Comment', 'ParleyTool Function',
      \ 'parleyFence ParleyPageDim', 'parleyWrong ParleyPageBad',
      \ 'parleyOn ParleyPageGood', 'parleyPartly ParleyPageUnsure', 'parleyOff ParleyPageDim', 'parleyName ParleyTool',
      \ 'parleyReady ParleyPageGood', 'parleyStarting ParleyPageUnsure', 'parleyStopped ParleyPageDim',
      \ 'parleyFailed ParleyPageBad', 'parleyLogTime ParleyPageDim', 'parleyLogKind ParleyPageLabel',
      \ 'parleyLogTool ParleyTool', 'parleyLogGood ParleyPageGood', 'parleyLogBad ParleyPageBad',
      \ ]
  execute 'highlight default link' s:link
endfor
unlet s:link

let b:current_syntax = 'parley'
